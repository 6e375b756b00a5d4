WITH mine AS (
  SELECT seq FROM treppe.live WHERE seq = $1 AND token = $2 AND worker = $3 AND running FOR SHARE
), dropped AS (
  DELETE FROM treppe.note n USING mine WHERE n.seq = mine.seq AND n.name = $4
)
SELECT 1 FROM mine
