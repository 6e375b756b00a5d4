SELECT current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
       coalesce((SELECT extract(epoch FROM clock_timestamp() - min(xact_start)) FROM pg_stat_activity
                 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()), 0)::double precision
