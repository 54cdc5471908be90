//! Which charts show which rows. `runs` has those of long runs.

mod runs;

use super::axis::{Axis, compact, compact_bytes, extent};
use super::chart::{Chart, Look, Point, Reference, Series};
use super::paper;
use crate::bench::rows::Rows;
use crate::bench::rows::copy_size::CopySizeRow;
use crate::bench::rows::cost::CostRow;
use crate::bench::rows::queue_depth::QueueDepthRow;
use crate::bench::rows::write::{StoreWrites, WriteRow};

/// The charts of one result, in reading order.
pub(crate) fn charts(rows: &Rows) -> Vec<Chart> {
    match rows {
        Rows::QueueDepth(rows) => queue_depth(rows),
        Rows::CopySize(rows) => copy_size(rows),
        Rows::Write(rows) => write(rows),
        Rows::Cost(rows) => cost(rows),
        Rows::Soak(rows) => runs::soak(rows),
        Rows::Churn(rows) => runs::churn(rows),
        // A handful of figures, which the table shows as well.
        Rows::Cache(_) | Rows::Scan(_) | Rows::Merge(_) => Vec::new(),
    }
}

/// Groups rows by a key, in order of appearance.
fn grouped<'a, R, K: PartialEq>(rows: impl IntoIterator<Item = &'a R>, key: impl Fn(&R) -> K) -> Vec<(K, Vec<&'a R>)> {
    let mut groups: Vec<(K, Vec<&R>)> = Vec::new();
    for row in rows {
        let of_row = key(row);
        match groups.iter_mut().find(|(key, _)| *key == of_row) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((of_row, vec![row])),
        }
    }
    groups
}

/// The ends of an error bar, if there is one.
type Range = Option<(f64, f64)>;

fn plain(value: f64) -> String {
    format!("{value}")
}

fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

fn queue_depth(rows: &[QueueDepthRow]) -> Vec<Chart> {
    let groups = grouped(rows, |row| (row.index.clone(), row.threads));
    let mut charts = Vec::new();
    for ((index, threads), rows) in &groups {
        let place = format!("index {index}, {threads} thread{}", if *threads == 1 { "" } else { "s" });
        let backends = grouped(rows.iter().copied(), |row| row.backend.clone());
        charts.push(rates_by_depth(&place, &backends));
        if rows.iter().any(|row| row.ratio.is_some()) {
            charts.push(ratios_by_depth(&place, &backends));
        }
        charts.push(latencies_by_depth(&place, &backends[0].0, &backends[0].1));
        charts.push(cpu_by_depth(&place, &backends));
    }
    charts
}

/// Rows of one chart by the backend that they were measured with.
type ByBackend<'a> = [(String, Vec<&'a QueueDepthRow>)];

fn depth_axis(backends: &ByBackend) -> Axis {
    let depths = backends.iter().flat_map(|(_, rows)| rows).map(|row| row.depth_per_thread as f64);
    Axis::log_at("queue depth per thread", depths, plain)
}

fn by_depth(
    rows: &[&QueueDepthRow],
    value: impl Fn(&QueueDepthRow) -> Option<(f64, Option<(f64, f64)>)>,
) -> Vec<Point> {
    let point = |row: &&QueueDepthRow| value(row).map(|(y, range)| Point { x: row.depth_per_thread as f64, y, range });
    rows.iter().filter_map(point).collect()
}

/// The paper's figure 2.
fn rates_by_depth(place: &str, backends: &ByBackend) -> Chart {
    let mut series: Vec<Series> = backends
        .iter()
        .enumerate()
        .map(|(rank, (backend, rows))| Series {
            name: format!("aiodb, {backend}"),
            look: Look::Ours(rank),
            points: by_depth(rows, |row| Some((row.gets_per_s, Some((row.gets_per_s_min, row.gets_per_s_max))))),
        })
        .collect();
    let (_, first) = &backends[0];
    let ceiling = by_depth(first, |row| Some((row.ceiling_reads_per_s?, None)));
    if !ceiling.is_empty() {
        let name = format!("this device alone, {} B reads", first[0].ceiling_read_bytes);
        series.push(Series { name, look: Look::Ceiling, points: ceiling });
    }
    let published = paper::AIODB_GETS_PER_S.map(|(x, y)| Point { x, y, range: None });
    let name = format!("AIODB ({})", paper::HARDWARE);
    series.push(Series { name, look: Look::Paper, points: published.to_vec() });
    let (min, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: format!("Gets per second against queue depth: {place}"),
        caption: "4096-byte values; logarithmic axes; bars: smallest and largest round".to_owned(),
        x: depth_axis(backends),
        y: Axis::log("gets per second", min, max.max(paper::FIO_READS_PER_S), compact),
        series,
        references: vec![Reference {
            name: format!("fio ({})", paper::HARDWARE),
            look: Look::Paper,
            y: paper::FIO_READS_PER_S,
        }],
    }
}

fn ratios_by_depth(place: &str, backends: &ByBackend) -> Chart {
    let with_interval = |row: &QueueDepthRow| {
        let ratio = row.ratio?;
        Some((ratio, row.ratio_ci95_half_width.map(|half| (ratio - half, ratio + half))))
    };
    let series: Vec<Series> = backends
        .iter()
        .enumerate()
        .map(|(rank, (backend, rows))| Series {
            name: format!("aiodb, {backend}"),
            look: Look::Ours(rank),
            points: by_depth(rows, with_interval),
        })
        .collect();
    // Bars are shown whole as long as they leave the rest readable.
    let points = series.iter().flat_map(|series| &series.points);
    let ends =
        points.flat_map(|point| [point.y, point.range.map_or(point.y, |r| r.0), point.range.map_or(point.y, |r| r.1)]);
    let (min, max) = extent(ends.map(|end| end.clamp(0.5, 1.5)));
    Chart {
        title: format!("Share of what the device gives: {place}"),
        caption: "paired rounds; bars: 95 % confidence interval".to_owned(),
        x: depth_axis(backends),
        y: Axis::linear("gets per read of the device alone", min.min(0.9), max.max(1.05), two_decimals),
        series,
        references: vec![Reference { name: "the device alone".to_owned(), look: Look::Ceiling, y: 1.0 }],
    }
}

fn latencies_by_depth(place: &str, backend: &str, rows: &[&QueueDepthRow]) -> Chart {
    type Quantile = fn(&QueueDepthRow) -> f64;
    let quantiles: [(&str, Quantile); 3] =
        [("median", |row| row.p50_us), ("99 %", |row| row.p99_us), ("99.9 %", |row| row.p999_us)];
    let series: Vec<Series> = quantiles
        .into_iter()
        .enumerate()
        .map(|(rank, (name, quantile))| Series {
            name: name.to_owned(),
            look: Look::Ours(rank),
            points: by_depth(rows, |row| Some((quantile(row), None))),
        })
        .collect();
    let (min, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: format!("Latency of a get: {place}, {backend}"),
        caption: "from submit to poll; logarithmic axes".to_owned(),
        x: depth_axis(&[(backend.to_owned(), rows.to_vec())]),
        y: Axis::log("microseconds", min, max, compact),
        series,
        references: Vec::new(),
    }
}

fn cpu_by_depth(place: &str, backends: &ByBackend) -> Chart {
    let mut series: Vec<Series> = backends
        .iter()
        .enumerate()
        .map(|(rank, (backend, rows))| Series {
            name: format!("aiodb, {backend}, per get"),
            look: Look::Ours(rank),
            points: by_depth(rows, |row| Some((row.cpu_us_per_get, None))),
        })
        .collect();
    let fio = by_depth(&backends[0].1, |row| Some((row.fio_cpu_us_per_read?, None)));
    if !fio.is_empty() {
        series.push(Series { name: "fio, per read".to_owned(), look: Look::Ceiling, points: fio });
    }
    let (_, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: format!("Processor time of a get: {place}"),
        caption: "user and system time of all threads".to_owned(),
        x: depth_axis(backends),
        y: Axis::linear("microseconds of CPU", 0.0, max, compact),
        series,
        references: Vec::new(),
    }
}

fn copy_size(rows: &[CopySizeRow]) -> Vec<Chart> {
    let groups = grouped(rows, |row| match row.depth {
        Some(depth) => format!("{}, reads from the device, depth {depth}", row.series),
        None => row.series.clone(),
    });
    vec![rates_by_copy(&groups), cpu_by_copy(&groups)]
}

/// Rows of one chart by store and depth.
type ByStore<'a> = [(String, Vec<&'a CopySizeRow>)];

fn copy_axis(groups: &ByStore) -> Axis {
    let sizes = groups.iter().flat_map(|(_, rows)| rows).map(|row| row.copy_bytes as f64);
    Axis::steps("bytes copied from each value", sizes, compact_bytes)
}

fn by_copy(groups: &ByStore, y: impl Fn(&CopySizeRow) -> f64, range: impl Fn(&CopySizeRow) -> Range) -> Vec<Series> {
    let point = |row: &&CopySizeRow| Point { x: row.copy_bytes as f64, y: y(row), range: range(row) };
    let series = groups.iter().enumerate().map(|(rank, (name, rows))| Series {
        name: name.clone(),
        look: Look::Ours(rank),
        points: rows.iter().map(point).collect(),
    });
    series.collect()
}

/// The paper's figure 1.
fn rates_by_copy(groups: &ByStore) -> Chart {
    let mut series = by_copy(groups, |row| row.gets_per_s, |row| Some((row.gets_per_s_min, row.gets_per_s_max)));
    let published = paper::LMDB_GETS_PER_S.map(|(x, y)| Point { x, y, range: None });
    let name = format!("LMDB in memory ({})", paper::HARDWARE);
    series.push(Series { name, look: Look::Paper, points: published.to_vec() });
    let (_, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: "Gets per second against the bytes copied from each value".to_owned(),
        caption: "4096-byte values, one thread; bars: smallest and largest round; steps are not to scale".to_owned(),
        x: copy_axis(groups),
        y: Axis::linear("gets per second", 0.0, max, compact),
        series,
        references: vec![Reference {
            name: format!("AIODB at its best ({})", paper::HARDWARE),
            look: Look::Paper,
            y: paper::AIODB_GETS_PER_S[1].1,
        }],
    }
}

fn cpu_by_copy(groups: &ByStore) -> Chart {
    let series = by_copy(groups, |row| row.cpu_us_per_get, |_| None);
    let (_, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: "Processor time of a get against the bytes copied".to_owned(),
        caption: "user and system time of all threads; steps are not to scale".to_owned(),
        x: copy_axis(groups),
        y: Axis::linear("microseconds of CPU", 0.0, max, compact),
        series,
        references: Vec::new(),
    }
}

fn write(rows: &[WriteRow]) -> Vec<Chart> {
    let stores: Vec<&StoreWrites> =
        rows.iter().filter_map(|row| if let WriteRow::Store(store) = row { Some(store) } else { None }).collect();
    let flushes = rows.iter().filter_map(|row| match row {
        WriteRow::Flush(flush) if [1, 8].contains(&flush.in_flight) => Some(Reference {
            name: format!("durable 4 KiB writes of the disk itself, {} in flight", flush.in_flight),
            look: Look::Ceiling,
            y: flush.flushes_per_s,
        }),
        _ => None,
    });
    let references: Vec<Reference> = flushes.collect();
    grouped(stores, |row| (row.index.clone(), row.key_bytes, row.value_bytes))
        .iter()
        .map(|((index, key_bytes, value_bytes), rows)| {
            let place = format!("index {index}, keys of {key_bytes} B, values of {value_bytes} B");
            writes_by_writers(&place, rows, references.clone())
        })
        .collect()
}

fn writes_by_writers(place: &str, rows: &[&StoreWrites], references: Vec<Reference>) -> Chart {
    let point = |row: &&StoreWrites| {
        let range = Some((row.puts_per_s_acked_min, row.puts_per_s_acked_max));
        Point { x: row.writers as f64, y: row.puts_per_s_acked, range }
    };
    let series: Vec<Series> = grouped(rows.iter().copied(), |row| row.durability.clone())
        .iter()
        .enumerate()
        .map(|(rank, (durability, rows))| Series {
            name: format!("durability {durability}"),
            look: Look::Ours(rank),
            points: rows.iter().map(point).collect(),
        })
        .collect();
    let rates = series
        .iter()
        .flat_map(|series| &series.points)
        .map(|point| point.y)
        .chain(references.iter().map(|line| line.y));
    let (min, max) = extent(rates);
    Chart {
        title: format!("Puts per second against writers: {place}"),
        caption: "until acknowledged; one thread per writer; logarithmic axes; bars: smallest and largest round"
            .to_owned(),
        x: Axis::log_at("concurrent writers", rows.iter().map(|row| row.writers as f64), plain),
        y: Axis::log("puts per second", min, max, compact),
        series,
        references,
    }
}

fn cost(rows: &[CostRow]) -> Vec<Chart> {
    grouped(rows, |row| (row.value_bytes, row.gets_per_s))
        .iter()
        .map(|((value_bytes, gets_per_s), rows)| {
            let place = format!("values of {value_bytes} B, {} gets/s", compact(*gets_per_s));
            cost_by_data(&place, rows)
        })
        .collect()
}

fn cost_by_data(place: &str, rows: &[&CostRow]) -> Chart {
    type Cost = fn(&CostRow) -> f64;
    let sides: [(&str, Cost); 2] =
        [("values on SSD, aiodb", |row| row.ssd_usd), ("all in memory, LMDB", |row| row.memory_usd)];
    let gigabytes = |row: &CostRow| row.data_bytes / 1e9;
    let series: Vec<Series> = sides
        .into_iter()
        .enumerate()
        .map(|(rank, (name, usd))| Series {
            name: name.to_owned(),
            look: Look::Ours(rank),
            points: rows.iter().map(|row| Point { x: gigabytes(row), y: usd(row), range: None }).collect(),
        })
        .collect();
    let (min, max) = extent(series.iter().flat_map(|series| &series.points).map(|point| point.y));
    Chart {
        title: format!("Cost against size of the data: {place}"),
        caption: "nodes, memory and SSDs at the prices in the notes; logarithmic axes".to_owned(),
        x: Axis::log_at("data, GB", rows.iter().map(|row| gigabytes(row)), plain),
        y: Axis::log("USD", min, max, compact),
        series,
        references: Vec::new(),
    }
}
