-- The named queries of `vramscope sql`; vramscope.sql has the views.
-- Each begins with a line of its name and the question that it answers.

-- contents: What is in the dataset?
-- Iterations of a run should have equal numbers of ranks. If not, a rank did not write its file.
SELECT run, iteration, count(DISTINCT path) AS files, count(DISTINCT rank) AS ranks,
       count(DISTINCT path) FILTER (error IS NOT NULL) AS unreadable,
       gib(max(requested_bytes_peak)) AS highest_peak_gib, sum(findings)::BIGINT AS findings
FROM ranks
GROUP BY ALL
ORDER BY ALL;

-- unreadable: Which files could not be read?
-- damaged often means that the job ended while it wrote the file.
SELECT run, iteration, path, file_bytes, error_kind, error
FROM ranks
WHERE error IS NOT NULL
ORDER BY ALL;

-- blind-spots: What do the recordings not show?
-- With a partial window, older events are lost: record earlier, or raise max_entries. Bytes without
-- a stack are of blocks from before the recording, or of code that was recorded without stacks.
WITH held AS (
    SELECT run, iteration, file, device, sum(bytes) AS peak,
           sum(bytes) FILTER (category = 'unknown') AS unknown,
           sum(bytes) FILTER (len(frame_ids) = 0) AS without_stack
    FROM peak LEFT JOIN stacks USING (stack_id)
    WHERE band = 'requested_bytes'
    GROUP BY ALL
)
SELECT run, iteration, rank, device, coverage, requested_bytes_exactness AS exactness,
       gib(coalesce(unknown, 0)) AS unknown_gib,
       gib(coalesce(without_stack, 0)) AS without_stack_gib,
       round(100 * greatest(coalesce(unknown, 0), coalesce(without_stack, 0)) / peak, 1) AS percent,
       warnings
FROM gpus JOIN held USING (run, iteration, file, device)
ORDER BY percent DESC, run, iteration, rank;

-- peaks: Which ranks peak highest?
-- allocated_gib is torch.cuda.max_memory_allocated(), and reserved_gib is
-- torch.cuda.max_memory_reserved().
SELECT run, iteration, rank, device, gib(requested_bytes_peak) AS requested_gib,
       gib(allocated_bytes_peak) AS allocated_gib, gib(reserved_bytes_peak) AS reserved_gib,
       requested_bytes_peak_event AS event
FROM gpus
ORDER BY requested_bytes_peak DESC, run, iteration, rank
LIMIT 20;

-- nearest-capacity: Which ranks are nearest to capacity?
-- The capacity is known from the file beside a snapshot, or from a failed allocation. The rank in
-- the first row fails first when batches or sequences grow.
SELECT run, iteration, rank, device, gib(capacity_bytes) AS capacity_gib,
       gib(capacity_bytes - reserved_bytes_peak) AS free_gib,
       round(100 * reserved_bytes_peak / capacity_bytes, 1) AS percent, ooms
FROM gpus
WHERE capacity_bytes IS NOT NULL
ORDER BY percent DESC, run, iteration, rank
LIMIT 20;

-- skew-by-stage: How far apart are the ranks of a stage?
-- Medians that differ between stages show an uneven cut of the model. A large skew_gib is one rank
-- that holds what the others of its stage do not hold, the next query says what.
SELECT run, iteration, stage, count(*) AS ranks,
       gib(min(requested_bytes_peak)) AS lowest_gib,
       gib(median(requested_bytes_peak)) AS median_gib,
       gib(max(requested_bytes_peak)) AS highest_gib,
       arg_max(rank, requested_bytes_peak) AS highest_rank,
       gib(max(requested_bytes_peak) - median(requested_bytes_peak)) AS skew_gib
FROM gpus
GROUP BY run, iteration, stage
ORDER BY skew_gib DESC, run, iteration, stage;

-- more-than-others: What does a rank hold that the others of its stage do not?
-- more_mib is what the rank holds at its peak beyond the median of its stage. Activations differ
-- with the length of sequences. A call site outside of the model is a defect, or work of one rank
-- alone.
WITH held AS (
    SELECT run, iteration, stage, rank, stack_id, any_value(site) AS site, sum(bytes) AS bytes
    FROM peak JOIN gpus USING (run, iteration, file, rank, device)
    WHERE band = 'requested_bytes' AND stack_id IS NOT NULL
    GROUP BY ALL
),
sizes AS (SELECT run, iteration, stage, count(DISTINCT rank) AS ranks FROM gpus GROUP BY ALL),
-- The middle one of the bytes of all ranks. Ranks without the call stack hold none.
usual AS (
    SELECT run, iteration, stage, stack_id,
           coalesce(list_sort(list(bytes), 'DESC')[any_value(ranks) // 2 + 1], 0) AS usual
    FROM held JOIN sizes USING (run, iteration, stage)
    GROUP BY ALL
)
SELECT run, iteration, stage, rank, site, mib(bytes - usual) AS more_mib, mib(usual) AS usual_mib
FROM held JOIN usual USING (run, iteration, stage, stack_id)
ORDER BY bytes - usual DESC, run, iteration, rank, site
LIMIT 20;

-- top-sites-by-rank: Which call sites hold the most on each rank?
-- percent is the share of the rank's own peak. All shares of a rank add up to 100.
SELECT run, iteration, rank, device, site, gib(sum(bytes)) AS gib,
       sum(blocks)::BIGINT AS blocks,
       round(100 * sum(bytes) / sum(sum(bytes)) OVER (PARTITION BY run, iteration, file, device), 1)
           AS percent
FROM peak
WHERE band = 'requested_bytes'
GROUP BY run, iteration, file, rank, device, site
QUALIFY row_number() OVER (
    PARTITION BY run, iteration, file, device ORDER BY sum(bytes) DESC, site) <= 3
ORDER BY run, iteration, rank, device, sum(bytes) DESC, site;

-- top-sites: Which call sites hold the most in the whole job?
-- A change here saves memory on ranks ranks at once. If most_gib times ranks is far above
-- all_ranks_gib, few ranks hold most of it.
SELECT run, iteration, any_value(site) AS site, category, gib(sum(bytes)) AS all_ranks_gib,
       count(DISTINCT rank) AS ranks, gib(max(bytes)) AS most_gib, arg_max(rank, bytes) AS most_rank
FROM (
    SELECT run, iteration, rank, stack_id, any_value(site) AS site, category, sum(bytes) AS bytes
    FROM peak
    WHERE band = 'requested_bytes' AND stack_id IS NOT NULL
    GROUP BY ALL
)
SEMI JOIN last_iteration USING (run, iteration)
GROUP BY run, iteration, stack_id, category
ORDER BY sum(bytes) DESC, site, category
LIMIT 20;

-- categories: What do the ranks hold, by category?
-- Compare percent between ranks: activations differ with the stage, parameters with the sharding.
SELECT run, iteration, rank, device, category, gib(sum(bytes)) AS gib,
       round(100 * sum(bytes) / sum(sum(bytes)) OVER (PARTITION BY run, iteration, file, device), 1)
           AS percent
FROM peak
SEMI JOIN last_iteration USING (run, iteration)
WHERE band = 'requested_bytes'
GROUP BY run, iteration, file, rank, device, category
ORDER BY run, iteration, rank, device, sum(bytes) DESC;

-- drift: Which ranks grow from iteration to iteration?
-- mib_per_iteration is the slope of a straight line through the peaks: the growth in one iteration,
-- not from one snapshot to the next. Ranks that do not grow are near 0, above or below it.
SELECT run, rank, device, count(*) AS iterations,
       gib(arg_min(requested_bytes_peak, iteration)) AS first_gib,
       gib(arg_max(requested_bytes_peak, iteration)) AS last_gib,
       mib(regr_slope(requested_bytes_peak, iteration)) AS mib_per_iteration
FROM gpus
GROUP BY run, rank, device
HAVING count(*) > 1
ORDER BY mib_per_iteration DESC, run, rank;

-- drift-by-site: Which call sites grow in every iteration?
-- A call site that holds more in each of three or more snapshots is a leak, or a cache that is not
-- full yet.
WITH held AS (
    SELECT run, iteration, rank, device, stack_id, any_value(site) AS site, sum(bytes) AS bytes
    FROM peak
    WHERE band = 'requested_bytes' AND stack_id IS NOT NULL
    GROUP BY ALL
),
grown AS (
    SELECT *, bytes - lag(bytes) OVER (
        PARTITION BY run, rank, device, stack_id ORDER BY iteration) AS growth
    FROM held
)
SELECT run, rank, device, any_value(site) AS site, count(*) AS iterations,
       mib(regr_slope(bytes, iteration)) AS mib_per_iteration, mib(max(bytes)) AS last_mib
FROM grown
GROUP BY run, rank, device, stack_id
HAVING count(*) > 2 AND min(growth) > 0
ORDER BY mib_per_iteration DESC, run, rank, site
LIMIT 20;

-- between-runs: Which call sites grew between two commits?
-- Export each run under the name of its commit: --run a1b2c3. Say which runs to compare: --set
-- before=a1b2c3 --set after=d4e5f6, or in DuckDB SET VARIABLE before = 'a1b2c3',. A call stack has
-- the same stack_id in both, also when its lines moved. The numbers are means of all GPUs of the
-- run. Without DESC, the list begins with what the change saved.
WITH held AS (
    SELECT run, stack_id, sum(bytes) AS bytes
    FROM peak SEMI JOIN last_iteration USING (run, iteration)
    WHERE band = 'requested_bytes' AND stack_id IS NOT NULL
    GROUP BY ALL
),
sizes AS (
    SELECT run, count(*) AS gpus
    FROM gpus SEMI JOIN last_iteration USING (run, iteration)
    GROUP BY run
),
mean AS (SELECT run, stack_id, bytes / gpus AS bytes FROM held JOIN sizes USING (run)),
paired AS (
    SELECT stack_id,
           coalesce(sum(bytes) FILTER (run = getvariable('before')), 0) AS before,
           coalesce(sum(bytes) FILTER (run = getvariable('after')), 0) AS after
    FROM mean
    GROUP BY stack_id
)
SELECT site, mib(before) AS before_mib, mib(after) AS after_mib, mib(after - before) AS growth_mib
FROM paired JOIN stacks USING (stack_id)
WHERE after <> before
ORDER BY after - before DESC, site
LIMIT 20;

-- fragmentation: Where is reserved memory not in use?
-- Unused reserved memory is cached, or lies between blocks. If one host has more than the others,
-- its allocator may have other settings: compare settings in ranks. Without a file beside the
-- snapshot the host is not known, and the query takes eight ranks as one.
SELECT run, iteration,
       coalesce(host, 'ranks ' || rank // 8 * 8 || ' to ' || rank // 8 * 8 + 7) AS host,
       count(*) AS gpus, gib(avg(reserved_bytes_end - active_bytes_end)) AS mean_unused_gib,
       gib(max(reserved_bytes_end - active_bytes_end)) AS most_unused_gib,
       arg_max(rank, reserved_bytes_end - active_bytes_end) AS most_rank,
       round(100 * max((reserved_bytes_end - active_bytes_end) / nullif(reserved_bytes_end, 0)), 1)
           AS most_percent
FROM gpus
GROUP BY ALL
ORDER BY most_unused_gib DESC, run, iteration, host;

-- kept-segments: Which segments are kept by few bytes?
-- empty_cache() cannot return such a segment. Allocate what stays (largest_site) before what comes
-- and goes, or use expandable_segments:True.
WITH few AS (
    SELECT run, iteration, file, rank, device, address, total_bytes, active_bytes
    FROM segments SEMI JOIN last_iteration USING (run, iteration)
    WHERE active_bytes > 0 AND active_bytes * 10 < total_bytes
)
SELECT run, iteration, rank, device, printf('0x%x', few.address) AS segment,
       mib(any_value(total_bytes)) AS total_mib, mib(any_value(active_bytes)) AS active_mib,
       arg_max(site, blocks.bytes) AS largest_site, arg_max(category, blocks.bytes) AS category
FROM few JOIN blocks USING (run, iteration, file, rank, device)
WHERE live_at_end AND blocks.address >= few.address
  AND blocks.address < few.address + total_bytes
GROUP BY run, iteration, file, rank, device, few.address
ORDER BY any_value(total_bytes - active_bytes) DESC, run, rank, segment
LIMIT 20;

-- ooms: What held memory when an allocation failed?
-- With site in place of category, the rows are call sites. If device_free_mib is above
-- requested_mib, no free piece of the device was large enough, or a limit was set.
WITH held AS (
    SELECT run, iteration, file, rank, device, event, requested_bytes, device_free_bytes, category,
           sum(bytes) AS bytes
    FROM ooms JOIN blocks USING (run, iteration, file, rank, device)
    WHERE is_live(alloc_event, free_completed_event, event)
    GROUP BY ALL
)
SELECT run, iteration, rank, device, event, mib(requested_bytes) AS requested_mib,
       mib(device_free_bytes) AS device_free_mib, category, mib(bytes) AS mib,
       round(100 * bytes / sum(bytes) OVER (PARTITION BY run, iteration, file, device, event), 1)
           AS percent
FROM held
ORDER BY run, iteration, rank, device, event, bytes DESC;

-- long-lived: Which blocks stay for many steps?
-- These blocks were allocated in a later step than the first, and are live two steps after it.
-- Training has none but caches. One block for each step is a leak.
SELECT run, iteration, rank, device, any_value(site) AS site, category, count(*) AS blocks,
       mib(sum(bytes)) AS mib, min(step) AS first_step, max(step) AS last_step
FROM blocks JOIN (SELECT run, iteration, file, device, steps FROM ranks) AS lengths
     USING (run, iteration, file, device)
WHERE live_at_end AND step >= 1 AND steps - step >= 2
GROUP BY run, iteration, file, rank, device, stack_id, category
ORDER BY sum(bytes) DESC, run, iteration, rank
LIMIT 20;

-- churn: Which call sites allocate most in a step?
-- The numbers are means of the ranks that have the call site. Many bytes with a short life are
-- candidates for in-place operations, and for buffers that are used again.
SELECT run, iteration, any_value(site) AS site, count(DISTINCT rank) AS ranks,
       mib(sum(bytes / steps) / count(DISTINCT file)) AS mib_per_step,
       round(sum(1 / steps) / count(DISTINCT file), 1) AS blocks_per_step,
       median(lifetime_us) AS median_lifetime_us
FROM blocks JOIN (SELECT run, iteration, file, device, steps FROM ranks WHERE steps > 0) AS lengths
     USING (run, iteration, file, device)
WHERE NOT preexisting
GROUP BY run, iteration, stack_id
ORDER BY mib_per_step DESC, run, iteration, site
LIMIT 20;

-- one-rank-only: Which call sites does one rank alone have?
-- Rank 0 alone may log, evaluate or gather a checkpoint. On another rank such a call site is a
-- surprise.
SELECT run, iteration, any_value(rank) AS rank, any_value(site) AS site, count(*) AS blocks,
       mib(sum(bytes)) AS allocated_mib
FROM blocks
WHERE (run, iteration) IN (
    SELECT (run, iteration) FROM gpus GROUP BY ALL HAVING count(DISTINCT rank) > 1)
GROUP BY run, iteration, stack_id
HAVING count(DISTINCT rank) = 1
ORDER BY sum(bytes) DESC, run, iteration, site
LIMIT 20;

-- peak-by-phase: In which phase is the peak?
-- A peak in forward or backward is mostly of activations, and checkpointing lowers it. A peak in
-- optimizer is of the optimizer's temporaries: foreach=False or a fused optimizer lowers it.
WITH highest AS (
    SELECT run, iteration, file, device, phase, max(peak_bytes) AS bytes
    FROM phases
    GROUP BY ALL
)
SELECT run, iteration, stage, phase, count(*) AS ranks, gib(avg(bytes)) AS mean_gib,
       gib(max(bytes)) AS most_gib,
       count(*) FILTER (bytes = requested_bytes_peak) AS ranks_with_their_peak
FROM highest JOIN gpus USING (run, iteration, file, device)
GROUP BY run, iteration, stage, phase
ORDER BY run, iteration, stage, most_gib DESC, phase;

-- packages: Which packages hold the memory?
-- through_gib is of all call stacks with a frame of the package, so these numbers overlap. own_gib
-- is of those whose innermost Python frame is of the package, so these add up.
WITH listed AS (
    SELECT stack_id, unnest(frame_ids) AS frame_id,
           generate_subscripts(frame_ids, 1) AS depth
    FROM stacks
),
named AS (
    SELECT stack_id, package(file) AS package, min(depth) AS depth
    FROM listed JOIN frames USING (frame_id)
    WHERE file LIKE '%.py'
    GROUP BY ALL
),
held AS (
    SELECT run, iteration, stack_id, sum(bytes) AS bytes
    FROM peak SEMI JOIN last_iteration USING (run, iteration)
    WHERE band = 'requested_bytes' AND stack_id IS NOT NULL
    GROUP BY ALL
)
SELECT run, iteration, package, gib(sum(bytes)) AS through_gib,
       gib(coalesce(sum(bytes) FILTER (is_innermost), 0)) AS own_gib
FROM held JOIN (
    SELECT *, depth = min(depth) OVER (PARTITION BY stack_id) AS is_innermost FROM named
) USING (stack_id)
GROUP BY run, iteration, package
ORDER BY sum(bytes) DESC, package;

-- near-peak: How long are the ranks near their peak?
-- A low percentage is a spike: one moment decides the peak, and a change at that moment lowers it.
SELECT run, iteration, curve.rank, device, count(*) AS buckets,
       round(100 * avg((requested_bytes >= 0.95 * requested_bytes_peak)::INT), 1) AS percent_near,
       gib(requested_bytes_peak) AS peak_gib, gib(median(requested_bytes)) AS median_gib
FROM curve JOIN gpus USING (run, iteration, file, device)
GROUP BY run, iteration, file, curve.rank, device, requested_bytes_peak
ORDER BY percent_near, run, iteration, curve.rank;

-- findings: What did vramscope find, and on how many ranks?
-- A finding on all ranks is of the program. One on a few ranks is of these ranks.
SELECT run, iteration, kind, severity, count(DISTINCT rank) AS ranks, count(*) AS findings,
       gib(sum(bytes)) AS gib, arg_max(rank, bytes) AS most_rank,
       arg_max(title, bytes) AS most_title, arg_max(site, bytes) AS most_site,
       arg_max(action, bytes) AS most_action
FROM findings
GROUP BY run, iteration, kind, severity
ORDER BY sum(bytes) DESC, kind, severity, run, iteration;
