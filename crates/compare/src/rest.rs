//! When an engine owes nothing any more: what its writes cost is known only then.

use crate::engine::Engine;
use crate::error::Result;
use crate::host::{Disk, Usage};
use std::thread;
use std::time::{Duration, Instant};

/// A process that used less than this share of a processor for so long has no work left.
const RESTING_PROCESSORS: f64 = 0.05;
const REST: Duration = Duration::from_secs(1);

/// The longest that an engine is given to catch up.
pub const MOST_CATCH_UP: Duration = Duration::from_secs(3600);

/// Lets the engine do what earlier writes left for later, and tells how many seconds that took and what was used until
/// then. Merges that an engine tells nothing of have ended when the process rests.
pub fn catch_up(engine: &dyn Engine, disk: &Disk) -> Result<(f64, Usage)> {
    let start = Instant::now();
    engine.finish()?;
    disk.flush()?;
    loop {
        let (seconds, usage) = (start.elapsed().as_secs_f64(), disk.usage()?);
        thread::sleep(REST);
        let used = disk.usage()?.cpu - usage.cpu;
        if used.as_secs_f64() < RESTING_PROCESSORS * REST.as_secs_f64() || start.elapsed() > MOST_CATCH_UP {
            return Ok((seconds, usage));
        }
    }
}
