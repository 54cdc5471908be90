//! The text format that Prometheus reads, version 0.0.4.

use std::fmt::Write;

use super::{Distribution, Metrics, TableMetrics};

/// The ends of buckets of times: powers of two of nanoseconds from a microsecond to a minute.
const TIME_BOUNDS: std::ops::RangeInclusive<u32> = 10..=36;
/// From a sector to the longest batch.
const BYTE_BOUNDS: std::ops::RangeInclusive<u32> = 9..=22;
const COUNT_BOUNDS: std::ops::RangeInclusive<u32> = 0..=16;
/// Per cent; each is the end of a recorded bucket.
const SHARE_BOUNDS: [u64; 6] = [10, 20, 40, 64, 80, 96];

/// The labels of what takes memory, in the order of [`crate::MemoryStats::parts`].
pub(super) const PART_LABELS: [&str; 8] = [
    "part=\"memtables\"",
    "part=\"runs\"",
    "part=\"hash\"",
    "part=\"versions\"",
    "part=\"batches\"",
    "part=\"buffers\"",
    "part=\"block_cache\"",
    "part=\"cache\"",
];

/// One metric: its name without the prefix, its meaning, and its values.
pub(super) struct Family<'a> {
    pub(super) name: &'static str,
    help: &'static str,
    value: Value<'a>,
}

/// Samples; labels are written as Prometheus wants them, `name="value"`.
enum Value<'a> {
    Counter(f64),
    Gauge(f64),
    Gauges(Vec<(&'static str, f64)>),
    /// A gauge that may say nothing.
    Maybe(Option<f64>),
    /// Of each table, by its name and further labels.
    OfTables(Kind, Vec<(String, f64)>),
    Histogram {
        unit: Unit,
        series: Vec<(&'static str, &'a Distribution)>,
    },
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    Bytes,
    Number,
    Ratio,
}

impl Unit {
    /// Recorded units in a base unit. Divided by, since that rounds to the decimal number that people expect.
    fn per_base_unit(self) -> f64 {
        match self {
            Unit::Seconds => 1e9,
            Unit::Bytes | Unit::Number => 1.0,
            Unit::Ratio => 100.0,
        }
    }

    fn bounds(self) -> Vec<u64> {
        match self {
            Unit::Seconds => TIME_BOUNDS.map(|power| 1 << power).collect(),
            Unit::Bytes => BYTE_BOUNDS.map(|power| 1 << power).collect(),
            Unit::Number => COUNT_BOUNDS.map(|power| 1 << power).collect(),
            Unit::Ratio => SHARE_BOUNDS.to_vec(),
        }
    }
}

impl Metrics {
    /// All metrics as text in Prometheus' format: for an HTTP handler of the embedding program, or for the textfile
    /// collector of its node exporter. Names begin with `aiodb_`; `docs/operations.md` lists them.
    pub fn to_prometheus(&self) -> String {
        let mut text = String::new();
        for family in self.families() {
            // Writing to a string cannot fail.
            let _ = family.write(&mut text);
        }
        text
    }

    pub(super) fn families(&self) -> Vec<Family<'_>> {
        let families =
            [self.reads(), self.writes(), self.index(), self.space(), self.memory(), self.tables(), self.opening()];
        families.into_iter().flatten().collect()
    }

    fn reads(&self) -> Vec<Family<'_>> {
        let waits = vec![("path=\"get\"", &self.get_read_wait_ns), ("path=\"reader\"", &self.reader_read_wait_ns)];
        vec![
            counter("lookups_total", "Keys looked up in an index.", self.lookups),
            counter("ambiguous_lookups_total", "Look-ups that led to more than one place.", self.ambiguous_lookups),
            Family {
                name: "read_wait_seconds",
                help: "Time reads waited for the device; one in 16 of path=\"reader\" is timed.",
                value: Value::Histogram { unit: Unit::Seconds, series: waits },
            },
            counter("cache_hits_total", "Look-ups in the cache of values that were answered.", self.cache_hits),
            counter("cache_misses_total", "Look-ups in the cache of values that were not.", self.cache_misses),
            counter("run_block_hits_total", "Blocks of sorted runs found in the cache of blocks.", self.run_block_hits),
            counter("run_block_reads_total", "Blocks of sorted runs that look-ups read.", self.run_block_reads),
            gauge("cache_bytes", "Memory of the cache of values.", self.cache_bytes),
            gauge("cache_budget_bytes", "What that cache may take at most.", self.cache_budget_bytes),
            gauge("block_cache_bytes", "Memory of the cache of blocks of sorted runs.", self.block_cache_bytes),
            gauge("block_cache_budget_bytes", "What that cache may take at most.", self.block_cache_budget_bytes),
        ]
    }

    fn writes(&self) -> Vec<Family<'_>> {
        let seconds = |name, help, times| histogram(name, help, Unit::Seconds, times);
        vec![
            seconds("write_wait_seconds", "Time writes of a batch to the log took.", &self.write_wait_ns),
            seconds("flush_wait_seconds", "Time flushes of a segment took.", &self.flush_wait_ns),
            histogram("batch_bytes", "Bytes of each batch, padding included.", Unit::Bytes, &self.batch_bytes),
            histogram("batch_records", "Records in each batch.", Unit::Number, &self.batch_records),
            histogram("batch_writers", "Writes that shared each batch.", Unit::Number, &self.batch_writers),
            seconds(
                "acknowledge_wait_seconds",
                "Time durable writes waited to be acknowledged.",
                &self.acknowledge_wait_ns,
            ),
            counter("log_written_bytes_total", "Bytes written to the log.", self.log_bytes_written),
            counter("records_written_total", "Records written to the log.", self.records_written),
        ]
    }

    fn index(&self) -> Vec<Family<'_>> {
        let seconds = |name, help, times| histogram(name, help, Unit::Seconds, times);
        vec![
            gauge("memtable_entries", "Entries of ordered tables that are not committed.", self.memtable_entries),
            seconds("memtable_commit_seconds", "Time commits of such entries took.", &self.memtable_commit_ns),
            counter(
                "memtable_committed_entries_total",
                "Entries committed to LMDB or runs.",
                self.memtable_committed_entries,
            ),
            seconds("checkpoint_seconds", "Time checkpoints took.", &self.checkpoint_ns),
            counter(
                "checkpoint_written_bytes_total",
                "Bytes of checkpoint files of hash tables.",
                self.checkpoint_bytes_written,
            ),
            gauge("checkpoint_lag_bytes", "Bytes of log since the last checkpoint.", self.checkpoint_lag_bytes),
            gauge("unsettled_tags", "Tags waiting to be settled, and keys to be folded.", self.unsettled_tags),
            counter("settled_tags_total", "Tags of hash tables settled.", self.settled_tags),
            counter("folded_keys_total", "Times that a key's operands were folded.", self.folded_keys),
            counter(
                "filter_asked_entries_total",
                "Records about which merges have asked compaction filters.",
                self.filter_asked_entries,
            ),
            counter("filter_dropped_keys_total", "Keys deleted for compaction filters.", self.filter_dropped_keys),
            gauge("filter_waiting_keys", "Keys that filters have given up, to be deleted.", self.filter_waiting_keys),
            gauge("waiting_range_deletes", "Range deletes to be carried out.", self.waiting_range_deletes),
            gauge(
                "oldest_pin_milliseconds",
                "Age of the oldest get in flight, which keeps segments.",
                self.oldest_pin_ms,
            ),
            gauge("snapshots", "Snapshots alive, those of scans among them.", self.snapshots),
            gauge("kept_versions", "Superseded records kept for snapshots.", self.kept_versions),
            gauge(
                "kept_versions_in_files",
                "Those of them that are in files, not in memory.",
                self.kept_versions_in_files,
            ),
            gauge("held_bytes", "Bytes that snapshots and backups hold back.", self.held_bytes),
            gauge("hash_memory_bytes", "Memory of the indexes of hash tables.", self.hash_memory_bytes),
            gauge("lmdb_file_bytes", "Bytes of LMDB's file.", self.lmdb_file_bytes),
        ]
    }

    fn space(&self) -> Vec<Family<'_>> {
        let segments = vec![
            ("state=\"in_use\"", self.segments_in_use as f64),
            ("state=\"free\"", self.segments_free as f64),
            ("state=\"retiring\"", self.segments_retiring as f64),
        ];
        vec![
            Family { name: "segments", help: "Segments by state.", value: Value::Gauges(segments) },
            gauge("open_files", "Segment files with an open file descriptor.", self.open_files),
            gauge("max_open_files", "How many segment files may have one.", self.max_open_files),
            gauge("live_bytes", "Bytes that the indexes refer to.", self.live_bytes),
            gauge("dead_bytes", "Other bytes of segments in use.", self.dead_bytes),
            gauge("log_file_bytes", "Bytes of the log's files.", self.log_file_bytes),
            gauge("runs", "Sorted runs of lsm tables.", self.runs),
            gauge("run_file_bytes", "Bytes of their files.", self.run_file_bytes),
            gauge("run_memory_bytes", "Memory of their filters and fences.", self.run_memory_bytes),
            gauge(
                "runs_above_bound",
                "Sorted runs beyond those with which no writer waits for merges.",
                self.runs_above_bound,
            ),
            gauge("merge_debt_bytes", "Bytes of runs that merges have yet to take in.", self.merge_debt_bytes),
            counter("reclaimed_segments_total", "Segments emptied by reclaim.", self.reclaimed_segments),
            counter("reclaim_moved_bytes_total", "Bytes of batches that reclaim wrote.", self.reclaim_moved_bytes),
            histogram(
                "reclaim_live_ratio",
                "Share of a segment that was alive when reclaim chose it.",
                Unit::Ratio,
                &self.victim_live_percent,
            ),
        ]
    }

    fn memory(&self) -> Vec<Family<'_>> {
        let parts = PART_LABELS.into_iter().zip(self.memory.parts());
        let parts = parts.map(|(label, (_, bytes))| (label, bytes as f64)).collect();
        vec![
            gauge("memory_budget_bytes", "Memory that the store may take.", self.memory.budget_bytes),
            Family { name: "memory_bytes", help: "Memory by what takes it.", value: Value::Gauges(parts) },
            gauge(
                "filters_left_out_bytes",
                "Filters of sorted runs that memory has no room for.",
                self.memory.filters_left_out_bytes,
            ),
            Family {
                name: "memory_full_seconds",
                help: "Seconds until memory reaches the budget, where it grows.",
                value: Value::Maybe(self.memory_full_seconds.map(|seconds| seconds as f64)),
            },
            Family {
                name: "disk_full_seconds",
                help: "Seconds until a disk is full, where it fills.",
                value: Value::Maybe(self.disk_full_seconds.map(|seconds| seconds as f64)),
            },
        ]
    }

    /// What of each table is in memory, where shares are estimates, and in sorted runs.
    fn tables(&self) -> Vec<Family<'_>> {
        let of = |kind, name, help, value: &dyn Fn(&TableMetrics) -> Option<f64>| {
            let sample = |table: &TableMetrics| {
                let labels = format!("table=\"{}\"", escaped(&table.name));
                value(table).map(|value| (labels, value))
            };
            Family { name, help, value: Value::OfTables(kind, self.tables.iter().filter_map(sample).collect()) }
        };
        let modes = self.tables.iter().map(|table| {
            let (keys, values) = (table.modes.keys.name(), table.modes.values.name());
            (format!("table=\"{}\",keys=\"{keys}\",values=\"{values}\"", escaped(&table.name)), 1.0)
        });
        vec![
            Family {
                name: "table_modes",
                help: "1, with what of a table memory keeps by preference as labels.",
                value: Value::OfTables(Kind::Gauge, modes.collect()),
            },
            of(
                Kind::Gauge,
                "table_keys_in_memory_ratio",
                "Share of a table's keys in memory, an estimate.",
                &|table| table.keys_in_memory,
            ),
            of(Kind::Gauge, "table_values_in_memory_ratio", "Share of its values in memory, an estimate.", &|table| {
                table.values_in_memory
            }),
            of(Kind::Gauge, "table_runs", "Sorted runs with its keys.", &|table| table.runs.map(|runs| runs as f64)),
            of(Kind::Gauge, "table_run_bytes", "Bytes of them on the disk.", &|table| {
                table.run_bytes.map(|bytes| bytes as f64)
            }),
            of(Kind::Gauge, "table_merge_debt_bytes", "Bytes of them that merges have yet to take in.", &|table| {
                table.merge_debt_bytes.map(|bytes| bytes as f64)
            }),
            of(Kind::Gauge, "table_cached_block_bytes", "Its bytes in the cache of blocks.", &|table| {
                Some(table.cached_block_bytes as f64)
            }),
            of(Kind::Gauge, "table_cached_value_bytes", "Its bytes in the cache of values.", &|table| {
                Some(table.cached_value_bytes as f64)
            }),
            of(
                Kind::Counter,
                "table_value_hits_total",
                "Look-ups in the cache of values that were answered.",
                &|table| Some(table.value_hits as f64),
            ),
            of(Kind::Counter, "table_value_misses_total", "Look-ups in the cache of values that were not.", &|table| {
                Some(table.value_misses as f64)
            }),
        ]
    }

    fn opening(&self) -> Vec<Family<'_>> {
        vec![
            Family {
                name: "recovery_seconds",
                help: "Time recovery took when the store was opened.",
                value: Value::Gauge(self.recovery_ms as f64 / 1000.0),
            },
            gauge("recovered_batches", "Batches replayed at opening.", self.recovered_batches),
            gauge("recovered_records", "Records replayed at opening.", self.recovered_records),
            gauge(
                "recovered_pending_records",
                "Records found at opening in memory that outlived a process.",
                self.recovered_pending_records,
            ),
            gauge("in_trouble", "1 if background work has failed or writes are refused.", u64::from(self.in_trouble)),
            gauge("write_failed", "1 if writes are refused until the next opening.", u64::from(self.write_failed)),
        ]
    }
}

fn counter<'a>(name: &'static str, help: &'static str, count: u64) -> Family<'a> {
    Family { name, help, value: Value::Counter(count as f64) }
}

fn gauge<'a>(name: &'static str, help: &'static str, size: u64) -> Family<'a> {
    Family { name, help, value: Value::Gauge(size as f64) }
}

fn histogram<'a>(name: &'static str, help: &'static str, unit: Unit, seen: &'a Distribution) -> Family<'a> {
    Family { name, help, value: Value::Histogram { unit, series: vec![("", seen)] } }
}

impl Family<'_> {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let kind = match self.value {
            Value::Counter(_) | Value::OfTables(Kind::Counter, _) => "counter",
            Value::Gauge(_) | Value::Gauges(_) | Value::Maybe(_) | Value::OfTables(Kind::Gauge, _) => "gauge",
            Value::Histogram { .. } => "histogram",
        };
        let name = format!("aiodb_{}", self.name);
        writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", self.help)?;
        match &self.value {
            Value::Counter(value) | Value::Gauge(value) => writeln!(text, "{name} {value}"),
            Value::Gauges(values) => {
                values.iter().try_for_each(|(label, value)| writeln!(text, "{name}{{{label}}} {value}"))
            }
            Value::Maybe(value) => value.iter().try_for_each(|value| writeln!(text, "{name} {value}")),
            Value::OfTables(_, values) => {
                values.iter().try_for_each(|(labels, value)| writeln!(text, "{name}{{{labels}}} {value}"))
            }
            Value::Histogram { unit, series } => {
                series.iter().try_for_each(|(label, seen)| write_histogram(text, &name, label, *unit, seen))
            }
        }
    }
}

fn write_histogram(text: &mut String, name: &str, label: &str, unit: Unit, seen: &Distribution) -> std::fmt::Result {
    let (per_unit, count) = (unit.per_base_unit(), seen.count());
    let comma = if label.is_empty() { "" } else { "," };
    for bound in unit.bounds() {
        let le = bound as f64 / per_unit;
        writeln!(text, "{name}_bucket{{{label}{comma}le=\"{le}\"}} {}", seen.count_up_to(bound))?;
    }
    writeln!(text, "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {count}")?;
    let labels = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    writeln!(text, "{name}_sum{labels} {}\n{name}_count{labels} {count}", seen.sum() as f64 / per_unit)
}

/// The value of a label as the format wants it.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
