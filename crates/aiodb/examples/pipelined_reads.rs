//! Hundreds of gets in flight from one thread.

use aiodb::{Batch, Db, IndexKind, Options};

fn main() -> aiodb::Result<()> {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    run(directory.path())
}

fn run(path: &std::path::Path) -> aiodb::Result<()> {
    let db = Db::open(path, Options::default())?;
    let table = db.table_or_create("squares", IndexKind::Hash)?;
    let mut batch = Batch::new();
    for number in 0..1000u32 {
        batch.put(&table, &number.to_be_bytes(), &(number * number).to_be_bytes())?;
    }
    db.write(&batch)?;

    let mut reader = table.reader(64)?;
    let (mut numbers, mut sum) = (0..1000u32, 0u64);
    loop {
        while reader.has_room() {
            let Some(number) = numbers.next() else { break };
            reader.submit(&number.to_be_bytes(), u64::from(number))?;
        }
        // Answers come in the order in which the device has them; the token says whose it is.
        let Some(got) = reader.poll()? else { break };
        let square = got.value?.expect("it was put");
        assert_eq!(square, (got.token as u32).pow(2).to_be_bytes());
        sum += got.token * got.token;
    }
    assert_eq!(sum, 332_833_500);
    db.close()
}

#[test]
fn it_runs() {
    main().expect("the example does what it shows");
}
