//! From runs to figures: what each engine did over all rounds, and ours against each rival at its best.

use crate::report::{self, Spread};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One run of an engine, in figures.
pub trait Run {
    /// What was done: only runs that did the same are compared.
    type Case: Case;
    /// What is told of a run.
    type Figure: Copy + Ord + 'static;
    /// All that is told.
    const FIGURES: &'static [Self::Figure];

    /// Of what it is a run.
    fn of(&self) -> Of<'_, Self::Case>;
    /// None if the run is void or the kernel does not say.
    fn figure(&self, figure: Self::Figure) -> Option<f64>;
}

/// Of what something is a run.
#[derive(Clone, Copy, Debug)]
pub struct Of<'a, C> {
    /// What was done.
    pub case: C,
    /// The engine and its setting.
    pub engine: &'a str,
    /// The engine without its setting.
    pub family: &'static str,
    /// From 1.
    pub round: u32,
    /// Whether the run does not count.
    pub is_void: bool,
}

/// What was done, as columns of a table.
pub trait Case: Copy + Ord {
    /// Their headings.
    const HEADINGS: &'static [&'static str];

    /// Their cells.
    fn cells(&self) -> Vec<String>;
}

/// One engine in one case, over all rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct Row<C, F> {
    /// What was done.
    #[serde(flatten)]
    pub case: C,
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// What the rounds measured, by the name of the figure; empty if all of them are void.
    pub figures: BTreeMap<F, Spread>,
    /// Rounds that do not count.
    pub void_rounds: usize,
}

/// Ours against a rival at its best, paired by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio<C, F> {
    /// What was done.
    #[serde(flatten)]
    pub case: C,
    /// Our engine with its index.
    pub ours: String,
    /// The rival with its best setting.
    pub theirs: String,
    /// Ours by theirs, by the name of the figure.
    pub figures: BTreeMap<F, Spread>,
}

/// One row for each case and engine.
pub fn summarise<R: Run>(runs: &[R]) -> Vec<Row<R::Case, R::Figure>> {
    let keys: BTreeSet<(R::Case, &str)> = runs.iter().map(|run| (run.of().case, run.of().engine)).collect();
    keys.into_iter().filter_map(|key| row(runs, key)).collect()
}

fn row<R: Run>(runs: &[R], (case, engine): (R::Case, &str)) -> Option<Row<R::Case, R::Figure>> {
    let own: Vec<&R> = runs.iter().filter(|run| run.of().case == case && run.of().engine == engine).collect();
    let spread = |&figure: &R::Figure| Some((figure, Spread::of(own.iter().filter_map(|run| run.figure(figure)))?));
    Some(Row {
        case,
        engine: engine.to_owned(),
        family: own.first()?.of().family,
        figures: R::FIGURES.iter().filter_map(spread).collect(),
        void_rounds: own.iter().filter(|run| run.of().is_void).count(),
    })
}

/// The family of our own engine.
const OURS: &str = "aiodb";

/// Each of ours against each rival at the setting with the highest median of a figure.
pub fn ratios<R: Run>(runs: &[R], best_by: R::Figure) -> Vec<Ratio<R::Case, R::Figure>> {
    let rows = summarise(runs);
    let mut ratios = Vec::new();
    for ours in rows.iter().filter(|row| row.family == OURS && !row.figures.is_empty()) {
        let rivals = rows.iter().filter(|row| row.family != OURS && row.case == ours.case);
        let families: BTreeSet<&str> = rivals.clone().map(|row| row.family).collect();
        for family in families {
            let best = best(rivals.clone().filter(|row| row.family == family), best_by);
            ratios.extend(best.map(|theirs| ratio(runs, ours.case, &ours.engine, &theirs.engine)));
        }
    }
    ratios
}

/// The row with the highest median of a figure, if there is one that counts.
pub fn best<'a, C: 'a, F: Ord + 'a>(rows: impl Iterator<Item = &'a Row<C, F>>, figure: F) -> Option<&'a Row<C, F>> {
    let median = |row: &Row<C, F>| row.figures.get(&figure).map(|spread| spread.median);
    rows.filter_map(|row| Some((median(row)?, row))).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, row)| row)
}

fn ratio<R: Run>(runs: &[R], case: R::Case, ours: &str, theirs: &str) -> Ratio<R::Case, R::Figure> {
    let of = |&figure: &R::Figure| Some((figure, paired(runs, case, (ours, figure), (theirs, figure))?));
    Ratio {
        case,
        ours: ours.to_owned(),
        theirs: theirs.to_owned(),
        figures: R::FIGURES.iter().filter_map(of).collect(),
    }
}

/// A figure of one engine by a figure of another one, paired by round.
pub fn paired<R: Run>(
    runs: &[R],
    case: R::Case,
    (ours, own): (&str, R::Figure),
    (theirs, other): (&str, R::Figure),
) -> Option<Spread> {
    let of = |engine: &str, round: u32, figure: R::Figure| {
        let same = |run: &&R| {
            let of = run.of();
            of.case == case && of.round == round && of.engine == engine
        };
        runs.iter().find(same)?.figure(figure)
    };
    let rounds: BTreeSet<u32> = runs.iter().map(|run| run.of().round).collect();
    let ratio = |round: u32| Some(of(ours, round, own)? / of(theirs, round, other)?);
    // Where theirs is 0 there is no ratio.
    Spread::of(rounds.into_iter().filter_map(ratio).filter(|ratio| ratio.is_finite()))
}

/// A column of a table: its heading, the figure, its scale and its decimals.
pub type Column<F> = (&'static str, F, f64, usize);

/// The rows as a Markdown table.
pub fn table<C: Case, F: Ord>(rows: &[Row<C, F>], columns: &[Column<F>]) -> String {
    let headings = columns.iter().map(|column| column.0);
    let headers: Vec<&str> = C::HEADINGS.iter().copied().chain(["engine"]).chain(headings).chain(["void"]).collect();
    let cells = rows.iter().map(|row| {
        let place = row.case.cells().into_iter().chain([row.engine.clone()]);
        place.chain(cells(&row.figures, columns)).chain([row.void_rounds.to_string()]).collect()
    });
    report::table(&headers, cells.collect())
}

/// The ratios as a Markdown table. Each line has a cell of the caller's behind the names.
pub fn ratio_table<'a, C: Case + 'a, F: Ord + 'a>(
    ratios: impl Iterator<Item = (&'a Ratio<C, F>, Vec<String>)>,
    more: &[&str],
    columns: &[Column<F>],
) -> String {
    let headings = columns.iter().map(|column| column.0);
    let headers: Vec<&str> =
        C::HEADINGS.iter().chain(&["ours", "rival"]).chain(more).copied().chain(headings).collect();
    let cells = ratios.map(|(ratio, more)| {
        let names = [ratio.ours.clone(), ratio.theirs.clone()];
        let place = ratio.case.cells().into_iter().chain(names).chain(more);
        place.chain(cells(&ratio.figures, columns)).collect()
    });
    report::table(&headers, cells.collect())
}

/// The cells of the columns.
fn cells<'a, F: Ord>(figures: &'a BTreeMap<F, Spread>, columns: &'a [Column<F>]) -> impl Iterator<Item = String> + 'a {
    columns.iter().map(|(_, figure, scale, decimals)| text(figures.get(figure).copied(), *scale, *decimals))
}

/// The median, with the ends where there are several rounds.
pub fn text(spread: Option<Spread>, scale: f64, decimals: usize) -> String {
    match spread {
        None => "-".to_owned(),
        Some(Spread { median, min, max }) if min == max => format!("{:.decimals$}", median * scale),
        Some(spread) => spread.text(scale, decimals),
    }
}
