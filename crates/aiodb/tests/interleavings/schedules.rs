//! Orders of threads: what chooses which one has the next step.

use aiodb::IndexKind;
use fastrand::Rng;
use shuttle::scheduler::{RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner};

/// Every kind of index: what its threads do to each other is its own.
const KINDS: [IndexKind; 3] = [IndexKind::Hash, IndexKind::Lmdb, IndexKind::Lsm];

const SCHEDULES: usize = 300;

/// How many times fewer orders there are of what takes long.
const FEWER: usize = 5;

/// Bytes of each thread's stack: opening a store takes more than `shuttle` gives by itself.
const STACK_BYTES: usize = 1 << 20;

/// Steps of a thread before the next comes: on average up to two to the power of this. A thread that does something long
/// between two steps of another needs more of them.
pub const RUN: u32 = 10;
pub const LONG_RUN: u32 = 13;

/// Runs `body` on every kind of index in many orders: with few switches here and there, at random after each step,
/// with one switch at a chosen place of each thread.
pub fn in_many_orders(run: u32, body: fn(IndexKind)) {
    in_orders(schedules(), run, body);
}

/// The same in fewer orders, of what takes long in each.
pub fn in_fewer_orders(run: u32, body: fn(IndexKind)) {
    in_orders(schedules().div_ceil(FEWER), run, body);
}

fn schedules() -> usize {
    std::env::var("AIODB_SCHEDULES").map_or(SCHEDULES, |text| text.parse().expect("a number"))
}

fn in_orders(schedules: usize, run: u32, body: fn(IndexKind)) {
    for kind in KINDS {
        let body = move || body(kind);
        let long_runs = LongRuns { left: schedules, run, steps: 1, random: Rng::with_seed(0) };
        Runner::new(long_runs, config()).run(body);
        Runner::new(RandomScheduler::new(schedules), config()).run(body);
        Runner::new(EachCutShort::new(schedules), config()).run(body);
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config
}

/// Runs `body` on every kind of index with its second thread cut short after each number of its steps, by a first one that runs on from then
/// until it must wait. The second begins when the first yields.
pub fn cut_short_at_each_step(body: fn(IndexKind)) {
    for kind in KINDS {
        let scheduler = CutShort { after: 0, steps: 0, begun: false, random: Rng::with_seed(0) };
        Runner::new(scheduler, config()).run(move || body(kind));
    }
}

struct CutShort {
    /// Steps that the second thread has in this order.
    after: usize,
    /// Steps that it has had.
    steps: usize,
    begun: bool,
    random: Rng,
}

impl Scheduler for CutShort {
    fn new_execution(&mut self) -> Option<Schedule> {
        // It came to its end before it could be cut short.
        if self.steps < self.after {
            return None;
        }
        *self = CutShort { after: self.after + 1, steps: 0, begun: false, random: self.random.clone() };
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        self.begun |= is_yielding;
        let second = TaskId::from(1);
        let is_on = self.begun && self.steps < self.after && runnable.iter().any(|task| task.id() == second);
        self.steps += usize::from(is_on);
        let first = runnable.first().map(|task| task.id());
        if is_on { Some(second) } else { first }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}

/// Lets a thread run for a while before another one comes: what must happen between two steps of one thread is often
/// all that another one does.
struct LongRuns {
    left: usize,
    /// See [`RUN`].
    run: u32,
    /// Of a thread before the next comes, on average.
    steps: u32,
    random: Rng,
}

impl Scheduler for LongRuns {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        self.steps = 1 << self.random.u32(4..self.run);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let goes_on = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        goes_on
            .filter(|_| !is_yielding && self.random.u32(..self.steps) > 0)
            .or_else(|| self.random.choice(runnable).map(|task| task.id()))
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}

/// Every thread begins with a rank below this.
const FIRST_RANKS: u64 = 1 << 32;

/// Runs the threads one after another in a random order, each until it must wait, and cuts each short once: after a random
/// number of its own steps the thread goes to the end of the order. A step of a short thread is as likely a place as one of a
/// long thread. With places chosen from the steps of all threads (Burckhardt et al., "A Randomized Scheduler with Probabilistic
/// Guarantees of Finding Bugs", ASPLOS 2010) nearly all lie in the longest thread.
struct EachCutShort {
    left: usize,
    /// The runnable thread of the lowest rank has the next step. By the thread's number, as all lists here.
    ranks: Vec<u64>,
    /// Steps since the order began, and in the order before it.
    steps: Vec<usize>,
    steps_before: Vec<usize>,
    /// Steps after which the thread is cut short.
    cuts: Vec<usize>,
    /// Threads that went to the end of the order.
    gone_last: u64,
    random: Rng,
}

impl EachCutShort {
    fn new(schedules: usize) -> EachCutShort {
        let (ranks, steps, steps_before, cuts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        EachCutShort { left: schedules, ranks, steps, steps_before, cuts, gone_last: 0, random: Rng::with_seed(0) }
    }

    /// Gives the thread its rank and its cut if it is new in this order.
    fn know(&mut self, thread: usize) {
        while self.ranks.len() <= thread {
            let most = self.steps_before.get(self.ranks.len()).map_or(1, |steps| steps + 1);
            self.cuts.push(self.random.usize(..most));
            self.ranks.push(self.random.u64(..FIRST_RANKS));
            self.steps.push(0);
        }
    }

    fn to_end(&mut self, thread: usize) {
        self.gone_last += 1;
        self.ranks[thread] = FIRST_RANKS + self.gone_last;
    }
}

impl Scheduler for EachCutShort {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        self.steps_before = std::mem::take(&mut self.steps);
        self.ranks.clear();
        self.cuts.clear();
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        if let (true, Some(current)) = (is_yielding, current) {
            self.know(current.into());
            self.to_end(current.into());
        }
        runnable.iter().for_each(|task| self.know(task.id().into()));
        let first = |ranks: &[u64]| runnable.iter().map(|task| task.id()).min_by_key(|id| ranks[usize::from(*id)]);
        let mut chosen = first(&self.ranks)?;
        // A thread that is alone cannot be cut short.
        if runnable.len() > 1 {
            let thread = usize::from(chosen);
            if self.steps[thread] == self.cuts[thread] {
                self.cuts[thread] = usize::MAX;
                self.to_end(thread);
                chosen = first(&self.ranks)?;
            }
            self.steps[thread] += 1;
        }
        Some(chosen)
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}
