//! One HTML page, without scripts or anything from elsewhere, of all results in the directory beside it. `figures` chooses
//! what is drawn, `chart` and `axis` draw it, `paper` has the paper's own figures. It is made of results alone and can be
//! made again from them; it measures nothing, and never changes a result.

mod axis;
mod chart;
mod figures;
mod paper;

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::outcome::{Outcome, write_file};
use super::rows::Rows;
use super::rows::churn::{self, ChurnRun};
use super::rows::copy_size::{AIODB, LMDB};
use super::rows::cost::CostRow;
use super::rows::merge::MergeRow;
use super::rows::scan::ScanRow;
use super::rows::soak::{self, SoakRow, SoakRun};
use super::rows::write::WriteRow;
use super::table::{Table, bytes, whole};
use super::terminal::progress;
use crate::CliError;
use chart::escaped;

const STYLE: &str = include_str!("report/style.css");

/// Where the results of a report lie.
pub(crate) fn results_beside(report: &Path) -> PathBuf {
    report.parent().unwrap_or(Path::new("")).join("results")
}

/// Draws the report from the results beside it.
pub(crate) fn render(report: &Path) -> Result<(), CliError> {
    let outcomes = Outcome::load_all(&results_beside(report))?;
    write_file(report, &page(&outcomes))?;
    progress(&format!("{} results drawn into {}", outcomes.len(), report.display()));
    Ok(())
}

fn page(outcomes: &[Outcome]) -> String {
    let contents: Vec<String> = outcomes
        .iter()
        .enumerate()
        .map(|(index, outcome)| {
            let date = escaped(day(&outcome.environment));
            format!("<a href='#result-{index}'>{} <small>{date}</small></a>", title(&outcome.rows))
        })
        .collect();
    let sections: String = outcomes.iter().enumerate().map(|(index, outcome)| section(index, outcome)).collect();
    format!(
        "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n<meta name='viewport' \
         content='width=device-width'>\n<meta name='color-scheme' content='light dark'>\n<title>aiodb: measurements\
         </title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>aiodb: measurements</h1>\n<p>The store beside \
         the limits of its device, measured in the same runs, and beside the figures of the AIODB paper. Figures of the \
         paper come from other hardware (Intel i5-6500, Optane 900P): compare shapes and ratios, not heights.</p>\n\
         <nav>{}</nav>\n</header>\n<main>\n{sections}</main>\n</body>\n</html>\n",
        contents.join("\n")
    )
}

fn title(rows: &Rows) -> &'static str {
    match rows {
        Rows::QueueDepth(_) => "Gets against queue depth",
        Rows::CopySize(_) => "Memory against device",
        Rows::Write(_) => "Writes",
        Rows::Cost(_) => "Cost in memory and on SSD",
        Rows::Cache(_) => "Cached values",
        Rows::Scan(_) => "Scans and backups",
        Rows::Soak(_) => "Inserts beyond memory",
        Rows::Churn(_) => "Overwrites",
        Rows::Merge(_) => "Counters",
    }
}

/// The date without the time of day.
fn day(environment: &Environment) -> &str {
    environment.date_utc.split('T').next().unwrap_or_default()
}

fn section(index: usize, outcome: &Outcome) -> String {
    let notes: String = outcome.notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    let charts: String = figures::charts(&outcome.rows).iter().map(chart::Chart::to_html).collect();
    let tables: String = outcome.rows.tables().iter().map(table_html).collect();
    format!(
        "<section id='result-{index}'>\n<h2>{}</h2>\n<p class='origin'>{} · commit <code>{}</code></p>\n\
         <pre><code>{}</code></pre>\n{}<div class='charts'>\n{charts}</div>\n<ul class='notes'>{notes}</ul>\n\
         <details open><summary>Environment</summary>{}</details>\n<details><summary>Data</summary>{tables}</details>\n\
         </section>\n",
        title(&outcome.rows),
        escaped(&outcome.environment.date_utc),
        escaped(&outcome.commit),
        escaped(&outcome.command),
        key_figures(&outcome.rows),
        environment_html(&outcome.environment),
    )
}

/// The few figures to take away.
fn key_figures(rows: &Rows) -> String {
    let figures: Vec<(String, String)> = match rows {
        Rows::QueueDepth(rows) => {
            let Some(best) = rows.iter().max_by(|a, b| a.gets_per_s.total_cmp(&b.gets_per_s)) else {
                return String::new();
            };
            let place =
                format!("{}, {}, {} threads, depth {}", best.index, best.backend, best.threads, best.depth_per_thread);
            let ratio = best.ratio.map(|ratio| {
                let half = best.ratio_ci95_half_width.map_or(String::new(), |half| format!(" ± {:.1}", half * 100.0));
                (format!("{:.1}{half} %", ratio * 100.0), "of the device alone, at that point".to_owned())
            });
            let cpu = (format!("{:.2} µs", best.cpu_us_per_get), "of CPU per get, at that point".to_owned());
            [Some((whole(best.gets_per_s), format!("gets/s at most: {place}"))), ratio, Some(cpu)]
                .into_iter()
                .flatten()
                .collect()
        }
        Rows::CopySize(rows) => {
            let fastest = |series: &str, copy_bytes: usize| {
                let rates = rows.iter().filter(|row| row.series == series && row.copy_bytes == copy_bytes);
                rates.map(|row| row.gets_per_s).reduce(f64::max).map(whole)
            };
            let figure = |value: Option<String>, words: &str| Some((value?, words.to_owned()));
            [
                figure(fastest(LMDB, 0), "gets/s: LMDB in memory, nothing copied"),
                figure(fastest(LMDB, 4096), "gets/s: LMDB in memory, 4 KiB copied"),
                figure(fastest(AIODB, 0), "gets/s: aiodb from the device"),
            ]
            .into_iter()
            .flatten()
            .collect()
        }
        Rows::Cache(rows) => {
            rows.iter().map(|row| (whole(row.gets_per_s), format!("gets/s: {}", row.in_words()))).collect()
        }
        Rows::Scan(rows) => rows.iter().filter_map(scan_figure).collect(),
        Rows::Soak(rows) => soak::runs(rows).map(soak_figure).collect(),
        Rows::Churn(rows) => churn::runs(rows).into_iter().flat_map(churn_figures).collect(),
        Rows::Merge(rows) => rows.iter().map(merge_figure).collect(),
        Rows::Write(rows) => most_durable_puts(rows).into_iter().chain(rows.iter().filter_map(write_figure)).collect(),
        Rows::Cost(rows) => {
            rows.iter().max_by(|a, b| a.data_bytes.total_cmp(&b.data_bytes)).map(cost_figure).into_iter().collect()
        }
    };
    let tiles = figures.iter().map(|(value, words)| format!("<div><b>{}</b>{}</div>", escaped(value), escaped(words)));
    format!("<div class='figures'>{}</div>\n", tiles.collect::<String>())
}

/// A series that is held against another.
fn scan_figure(row: &ScanRow) -> Option<(String, String)> {
    let words = format!("{}, of the rate of: {}", row.series, row.against.as_ref()?);
    Some((format!("{:.0} %", row.ratio? * 100.0), words))
}

/// What was left of a run's rate at its end.
fn soak_figure(run: &[SoakRow]) -> (String, String) {
    let (rates, last) = (SoakRun::of(run).puts_per_s, &run[run.len() - 1]);
    let words = format!(
        "of the first puts/s at {} keys: {}, {}, {} writers",
        whole(last.keys as f64),
        last.index,
        last.durability,
        last.writers
    );
    (format!("{:.0} %", 100.0 * rates.last / rates.first), words)
}

/// What an overwrite costs, and whether the rate stays.
fn churn_figures(run: &ChurnRun) -> Vec<(String, String)> {
    let place = run.load.in_words();
    let figure = |value: Option<f64>, words: &str| Some((format!("{:.2}", value?), format!("{words}: {place}")));
    let figures = [
        figure(run.device_bytes_per_user_byte, "bytes written by the disk for each that was overwritten"),
        figure(Some(run.most_space), "times the live data's space at most"),
        figure(Some(run.worst_to_mean), "of the mean rate in the worst stretch"),
    ];
    figures.into_iter().flatten().collect()
}

fn merge_figure(row: &MergeRow) -> (String, String) {
    (format!("{:.2}", row.merges_to_puts.median), format!("merges for each put: {}", row.place()))
}

/// The best rate at which every put was on the device when it was acknowledged.
fn most_durable_puts(rows: &[WriteRow]) -> Option<(String, String)> {
    let durable = rows.iter().filter_map(|row| match row {
        WriteRow::Store(store) if store.durability == "sync" => Some(store),
        _ => None,
    });
    let best = durable.max_by(|a, b| a.puts_per_s_acked.total_cmp(&b.puts_per_s_acked))?;
    let words =
        format!("durable puts/s at most: {}, {} B values, {} writers", best.index, best.value_bytes, best.writers);
    Some((whole(best.puts_per_s_acked), words))
}

/// The most data, where memory has to show whether it is worth its price.
fn cost_figure(row: &CostRow) -> (String, String) {
    let words = format!(
        "of the cost in memory: {} with values of {} B, {} gets/s",
        bytes(row.data_bytes as u64),
        row.value_bytes,
        whole(row.gets_per_s)
    );
    (format!("{:.1} %", row.ssd_to_memory_usd * 100.0), words)
}

fn write_figure(row: &WriteRow) -> Option<(String, String)> {
    match row {
        WriteRow::Flush(flush) if [1, 8].contains(&flush.in_flight) => {
            let words = format!("durable 4 KiB writes/s of the disk itself, {} in flight", flush.in_flight);
            Some((whole(flush.flushes_per_s), words))
        }
        WriteRow::Sequential(sequential) => Some((
            format!("{}/s", bytes(sequential.bytes_per_s as u64)),
            "sequential direct writes of the disk itself".to_owned(),
        )),
        WriteRow::Flush(_) | WriteRow::Store(_) => None,
    }
}

fn environment_html(environment: &Environment) -> String {
    let blocks = format!("{} / {} bytes", environment.disk_logical_block_bytes, environment.disk_physical_block_bytes);
    let entries = [
        ("Kernel", environment.kernel.clone()),
        ("CPU", format!("{} ({} cores)", environment.cpu, environment.cores)),
        ("Memory", bytes(environment.memory_bytes)),
        ("Disk", format!("{} ({})", environment.disk, environment.disk_model)),
        ("Blocks, logical / physical", blocks),
        ("Scheduler", environment.disk_scheduler.clone()),
        ("File system", environment.file_system.clone()),
        ("fio", environment.fio.clone()),
    ];
    let items = entries.iter().map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escaped(value)));
    format!("<dl>{}</dl>", items.collect::<String>())
}

fn table_html(table: &Table) -> String {
    let class = |column: usize| if table.is_numeric(column) { " class='n'" } else { "" };
    let row = |cells: &[String], tag: &str| {
        let cells =
            cells.iter().enumerate().map(|(column, cell)| format!("<{tag}{}>{}</{tag}>", class(column), escaped(cell)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let header: Vec<String> = table.columns.iter().map(|column| (*column).to_owned()).collect();
    let body: String = table.rows.iter().map(|cells| row(cells, "td")).collect();
    format!(
        "<div class='scroll'><table>\n<thead>{}</thead>\n<tbody>{body}</tbody>\n</table></div>\n",
        row(&header, "th")
    )
}

#[cfg(test)]
mod tests;
