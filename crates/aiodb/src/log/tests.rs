use std::path::{Path, PathBuf};

use super::Segments;
use crate::io::sim::SimDevice;
use crate::io::{Access, Device, File, WriteSync};

const SEGMENT_BYTES: u64 = 64 << 10;

/// The space of a segment that the files of a checkpoint were given is theirs until they are written.
#[test]
fn no_segment_is_made_of_lent_space() {
    let device = SimDevice::new(1);
    for path in ["/store", "/store/log"] {
        device.create_dir(Path::new(path)).expect("a directory can be made");
    }
    let segments =
        Segments::new(device.clone(), vec![PathBuf::from("/store")], Access::SEGMENT, [7; 16], SEGMENT_BYTES);
    device.set_capacity(Some(5 * SEGMENT_BYTES));
    segments.replenish().expect("there is room for five");
    let lent = segments.lend_one().expect("space can be given back").expect("there are free segments");
    assert!(segments.replenish().expect_err("the space is lent").is_full());
    let file = device.open(Path::new("/store/file"), Access::CREATE).expect("a file can be made");
    file.write_at(&[1; SEGMENT_BYTES as usize], 0, WriteSync::Later).expect("the space is there");
    file.truncate(0).expect("a file can be emptied");
    drop(lent);
    segments.replenish().expect("the space is free again");
}
