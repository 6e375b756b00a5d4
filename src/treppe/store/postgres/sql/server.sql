SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(xact_start)) FROM pg_stat_activity
                 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), 0)::double precision,
       ARRAY(SELECT r.rolname::text FROM pg_db_role_setting s
             JOIN pg_roles r ON r.oid = s.setrole, unnest(s.setconfig) setting
             WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
               AND setting ~* '^synchronous_commit=(off|false|no|0)$' ORDER BY 1)
