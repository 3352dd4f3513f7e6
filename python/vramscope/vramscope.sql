-- Views and macros over a dataset that `vramscope export --as parquet` wrote, for DuckDB.
-- `vramscope sql` has queries; docs/fleets.md describes the tables.
--
--     cd DATASET && duckdb -init vramscope.sql
--
-- For a dataset elsewhere, say where it is, and read this file then:
--
--     SET VARIABLE dataset = 's3://bucket/dataset';
--     .read vramscope.sql
--
-- All names are temporary: a database that is open stays as it is.

SET VARIABLE dataset = coalesce(getvariable('dataset'), '.');

-- The stages of the pipeline, for the column `stage` of `gpus`.
SET VARIABLE stages = coalesce(getvariable('stages'), 1);

-- The files of a table.
CREATE OR REPLACE TEMP MACRO parts(name) AS
    getvariable('dataset') || '/' || name || '/run=*/iteration=*/*.parquet';

CREATE OR REPLACE TEMP VIEW ranks AS
FROM read_parquet(parts('ranks'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW blocks AS
FROM read_parquet(parts('blocks'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW peak AS
FROM read_parquet(parts('peak'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW curve AS
FROM read_parquet(parts('curve'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW segments AS
FROM read_parquet(parts('segments'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW ooms AS
FROM read_parquet(parts('ooms'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW findings AS
FROM read_parquet(
    parts('findings'), hive_types = {'run': VARCHAR, 'iteration': BIGINT},
    union_by_name = true); -- Parts of earlier versions have fewer columns.

CREATE OR REPLACE TEMP VIEW phases AS
FROM read_parquet(parts('phases'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

CREATE OR REPLACE TEMP VIEW annotations AS
FROM read_parquet(parts('annotations'), hive_types = {'run': VARCHAR, 'iteration': BIGINT});

-- Each part has the stacks and frames of its files. These views have each of them once.
CREATE OR REPLACE TEMP VIEW stacks AS
SELECT stack_id, any_value(site) AS site, any_value(frame_ids) AS frame_ids,
       any_value(lines) AS lines
FROM read_parquet(parts('stacks'))
GROUP BY stack_id;

CREATE OR REPLACE TEMP VIEW frames AS
SELECT frame_id, any_value(name) AS name, any_value(file) AS file
FROM read_parquet(parts('frames'))
GROUP BY frame_id;

-- The GPUs that could be read, with the stage of the pipeline that their rank is in. Stages have
-- neighboring ranks, as in Megatron.
CREATE OR REPLACE TEMP VIEW gpus AS
SELECT *, rank * getvariable('stages') // (max(rank) OVER (PARTITION BY run) + 1) AS stage
FROM ranks
WHERE error IS NULL AND kind = 'gpu';

-- The last iteration of each run.
CREATE OR REPLACE TEMP VIEW last_iteration AS
SELECT run, max(iteration) AS iteration FROM ranks GROUP BY run;

-- Bytes in GiB and MiB.
CREATE OR REPLACE TEMP MACRO gib(bytes) AS round(bytes / 1073741824, 3);
CREATE OR REPLACE TEMP MACRO mib(bytes) AS round(bytes / 1048576, 1);

-- Whether a block is live after an event.
CREATE OR REPLACE TEMP MACRO is_live(alloc_event, free_completed_event, event) AS
    coalesce(alloc_event, -1) <= event
    AND (free_completed_event IS NULL OR free_completed_event > event);

-- The package of a frame's file. Files outside of packages have no folder.
CREATE OR REPLACE TEMP MACRO package(file) AS
    CASE WHEN contains(file, '/') THEN split_part(file, '/', 1) ELSE '(own code)' END;

-- The frames of a call stack, innermost first.
CREATE OR REPLACE TEMP MACRO frames_of(id) AS TABLE
WITH listed AS (
    SELECT unnest(frame_ids) AS frame_id, unnest(lines) AS line,
           generate_subscripts(frame_ids, 1) AS depth
    FROM stacks
    WHERE stack_id = id
)
SELECT depth, file, line, name
FROM listed JOIN frames USING (frame_id)
ORDER BY depth;
