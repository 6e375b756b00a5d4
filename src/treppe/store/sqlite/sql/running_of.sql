-- Of claims given as [seq, token, worker]: those that run, on time and undisturbed. One row, so that one step does it.
SELECT json_group_array(l.seq)
FROM json_each(?) f CROSS JOIN treppe_live l ON l.seq = json_extract(f.value, '$[0]')
WHERE l.token = json_extract(f.value, '$[1]') AND l.worker = json_extract(f.value, '$[2]')
  AND l.parked = 4 AND l.lapsed = 0 AND l.cancel = 0
