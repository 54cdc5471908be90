//! aiodb for Java: the native methods of `io.aiodb.store.aiodb.Native`. They convert, call and report the error, and
//! nothing else.
//!
//! Java holds numbers (`handles.rs`), not pointers; keys, batches and rows pass through direct buffers (`buffer.rs`); every
//! failure, a panic of the engine included, becomes an exception (`failure.rs`).

mod buffer;
mod failure;
mod handles;
mod operations;
mod rows;
mod store;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use aiodb::{Options, Table, TableModes, TableOptions};
use jni::JNIEnv;
use jni::objects::{JByteBuffer, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{JNI_FALSE, jboolean, jbyteArray, jint, jlong, jstring};

use buffer::{Direct, length};
use failure::{Failure, Result, guard};
use handles::Handles;
use store::Store;

/// Threads of Java put keys into a memtable that one thread of the engine frees: the allocator of glibc keeps such memory in the
/// arenas of those threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

static STORES: LazyLock<Handles<Store>> = LazyLock::new(|| Handles::new("store"));

/// What the Java classes must find here, or they belong to another version.
const INTERFACE_VERSION: jint = 11;

/// A key that is absent, where lengths are answered.
const ABSENT: jint = -1;

fn text(env: &mut JNIEnv<'_>, string: &JString<'_>) -> Result<String> {
    if string.is_null() {
        return Err(Failure::Argument("a string is null"));
    }
    Ok(env.get_string(string)?.into())
}

fn texts(env: &mut JNIEnv<'_>, strings: &JObjectArray<'_>) -> Result<Vec<String>> {
    if strings.is_null() {
        return Err(Failure::Argument("an array is null"));
    }
    let count = env.get_array_length(strings)?;
    (0..count)
        .map(|position| {
            let string = JString::from(env.get_object_array_element(strings, position)?);
            text(env, &string)
        })
        .collect()
}

fn modes(env: &mut JNIEnv<'_>, keys: &JString<'_>, values: &JString<'_>) -> Result<TableModes> {
    Ok(TableModes { keys: store::mode(&text(env, keys)?)?, values: store::mode(&text(env, values)?)? })
}

fn tables(env: &mut JNIEnv<'_>, store: &Store, handles: &JLongArray<'_>) -> Result<Vec<Arc<Table>>> {
    if handles.is_null() {
        return Err(Failure::Argument("an array is null"));
    }
    let mut numbers = vec![0; length(env.get_array_length(handles)?)?];
    env.get_long_array_region(handles, 0, &mut numbers)?;
    numbers.into_iter().map(|handle| store.known_table(handle)).collect()
}

/// `static native int interfaceVersion()`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_interfaceVersion(_: JNIEnv<'_>, _: JClass<'_>) -> jint {
    INTERFACE_VERSION
}

/// `static native long open(String[] paths, int durability, long intervalMillis, long memoryBytes, int memorySharedBy,
/// long cacheBytes, boolean cacheWrites, long blockCacheBytes, long segmentBytes, long maxOpenFiles, String compression,
/// String index, int inlineBytes, String blockCompression)`; the engine decides on memory and a cache of blocks that are negative.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_open(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    paths: JObjectArray<'_>,
    class: jint,
    interval_ms: jlong,
    memory_bytes: jlong,
    memory_shared_by: jint,
    cache_bytes: jlong,
    cache_writes: jboolean,
    block_cache_bytes: jlong,
    segment_bytes: jlong,
    max_open_files: jlong,
    compression: JString<'_>,
    index: JString<'_>,
    inline_bytes: jint,
    block_compression: JString<'_>,
) -> jlong {
    guard(&mut env, |env| {
        let paths = texts(env, &paths)?;
        let compression = store::compression(&text(env, &compression)?)?;
        let inline_bytes = usize::try_from(inline_bytes);
        let inline_bytes = inline_bytes.map_err(|_| Failure::Argument("a number of bytes is negative"))?;
        let block_compression = store::compression(&text(env, &block_compression)?)?;
        let kind = store::kind(&text(env, &index)?)?;
        let made = TableOptions { compression, inline_bytes, block_compression, ..kind.into() };
        let bytes = |value: jlong| u64::try_from(value).map_err(|_| Failure::Argument("a number of bytes is negative"));
        let options = Options {
            durability: store::durability(class, interval_ms)?,
            memory_bytes: u64::try_from(memory_bytes).ok(),
            memory_shared_by: u32::try_from(memory_shared_by)
                .map_err(|_| Failure::Argument("a number of stores is negative"))?,
            cache_bytes: bytes(cache_bytes)?,
            cache_writes: cache_writes != JNI_FALSE,
            block_cache_bytes: u64::try_from(block_cache_bytes).ok(),
            segment_bytes: bytes(segment_bytes)?,
            max_open_files: usize::try_from(max_open_files)
                .map_err(|_| Failure::Argument("a number of files is negative"))?,
            // Where `aiodb stat --watch` looks.
            metrics_file: paths.first().map(|path| Path::new(path).join("metrics.prom")),
            ..Options::default()
        };
        STORES.insert(Store::open(&paths, made, options)?)
    })
}

/// `static native void close(long store)`; closing twice does nothing.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_close(mut env: JNIEnv<'_>, _: JClass<'_>, store: jlong) {
    guard(&mut env, |_| match STORES.remove(store) {
        Some(store) => Ok(store.db.close()?),
        None => Ok(()),
    })
}

/// `static native long table(long store, String name)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_table(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    name: JString<'_>,
) -> jlong {
    guard(&mut env, |env| STORES.get(store)?.table(&text(env, &name)?))
}

/// `static native long createTable(long store, String name, boolean frames, String keys, String values)`: both are storage modes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_createTable(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    name: JString<'_>,
    frames: jboolean,
    keys: JString<'_>,
    values: JString<'_>,
) -> jlong {
    guard(&mut env, |env| {
        let modes = modes(env, &keys, &values)?;
        STORES.get(store)?.create_table(&text(env, &name)?, frames != JNI_FALSE, modes)
    })
}

/// `static native void setTableModes(long store, long table, String keys, String values)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_setTableModes(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
    keys: JString<'_>,
    values: JString<'_>,
) {
    guard(&mut env, |env| {
        let modes = modes(env, &keys, &values)?;
        STORES.get(store)?.set_table_modes(table, modes)
    })
}

/// `static native void setMemoryBytes(long store, long bytes)`; the engine decides where they are negative.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_setMemoryBytes(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    bytes: jlong,
) {
    guard(&mut env, |_| Ok(STORES.get(store)?.db.set_memory_bytes(u64::try_from(bytes).ok())?))
}

/// `static native String tableNames(long store)`: one a line; names have no control characters.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_tableNames(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
) -> jstring {
    guard(&mut env, |env| {
        let names: Vec<String> = STORES.get(store)?.db.tables().into_iter().map(|(name, _)| name).collect();
        Ok(Returned(env.new_string(names.join("\n"))?.into_raw()))
    })
    .0
}

/// `static native void truncateTable(long store, long table)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_truncateTable(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
) {
    guard(&mut env, |_| STORES.get(store)?.truncate_table(table))
}

/// `static native void dropTable(long store, long table)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_dropTable(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
) {
    guard(&mut env, |_| STORES.get(store)?.drop_table(table))
}

/// `static native void write(long store, ByteBuffer operations, int length, long[] tables, int durability,
/// long intervalMillis)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_write(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    operations: JByteBuffer<'_>,
    operations_length: jint,
    table_handles: JLongArray<'_>,
    class: jint,
    interval_ms: jlong,
) {
    guard(&mut env, |env| {
        let store = STORES.get(store)?;
        let durability = store::durability(class, interval_ms)?;
        let tables = tables(env, &store, &table_handles)?;
        let bytes = Direct::new(env, &operations)?.read(0, length(operations_length)?)?;
        operations::write(&store.db, &tables, &bytes, durability).map(|_| ())
    })
}

/// `static native int get(long store, long table, long snapshot, ByteBuffer key, int keyLength, ByteBuffer value,
/// int start, int room)`: the value's length, or -1; where there is not room enough, nothing is stored.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_get(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
    snapshot: jlong,
    key: JByteBuffer<'_>,
    key_length: jint,
    value: JByteBuffer<'_>,
    start: jint,
    room: jint,
) -> jint {
    guard(&mut env, |env| {
        let key = Direct::new(env, &key)?.read(0, length(key_length)?)?;
        let mut destination = Direct::new(env, &value)?;
        let (start, room) = (length(start)?, length(room)?);
        if start.checked_add(room).is_none_or(|end| end > destination.len()) {
            return Err(Failure::Argument("a length goes beyond its buffer"));
        }
        let Some(value) = STORES.get(store)?.get(table, snapshot, &key)? else { return Ok(ABSENT) };
        if value.len() <= room {
            destination.write(start, &value);
        }
        jint::try_from(value.len()).map_err(|_| Failure::Argument("a value is longer than Java can say"))
    })
}

/// `static native byte[] getArray(long store, long table, long snapshot, ByteBuffer key, int keyLength)`: null if absent.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_getArray(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
    snapshot: jlong,
    key: JByteBuffer<'_>,
    key_length: jint,
) -> jbyteArray {
    guard(&mut env, |env| {
        let key = Direct::new(env, &key)?.read(0, length(key_length)?)?;
        Ok(match STORES.get(store)?.get(table, snapshot, &key)? {
            Some(value) => Returned(env.byte_array_from_slice(&value)?.into_raw()),
            None => Returned::default(),
        })
    })
    .0
}

/// `static native long snapshot(long store)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_snapshot(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
) -> jlong {
    guard(&mut env, |_| {
        let store = STORES.get(store)?;
        store.snapshots.insert(store.db.snapshot()?)
    })
}

/// `static native void closeSnapshot(long store, long snapshot)`; closing twice does nothing.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_closeSnapshot(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    snapshot: jlong,
) {
    guard(&mut env, |_| {
        if let Ok(store) = STORES.get(store) {
            store.snapshots.remove(snapshot);
        }
        Ok(())
    })
}

/// `static native long scan(long store, long table, long snapshot, ByteBuffer bounds, int fromLength, int toLength,
/// int flags, long limit)`: both bounds lie in one buffer, one after the other.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_scan(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
    snapshot: jlong,
    bounds: JByteBuffer<'_>,
    from_length: jint,
    to_length: jint,
    flags: jint,
    limit: jlong,
) -> jlong {
    guard(&mut env, |env| {
        let bounds = Direct::new(env, &bounds)?;
        let from = bounds.read(0, length(from_length)?)?;
        let to = bounds.read(from.len(), length(to_length)?)?;
        STORES.get(store)?.scan(table, snapshot, store::scan_options(&from, &to, flags, limit)?)
    })
}

/// `static native long next(long store, long scan, ByteBuffer rows)`, see `Rows::fill`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_next(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    scan: jlong,
    buffer: JByteBuffer<'_>,
) -> jlong {
    guard(&mut env, |env| {
        let mut buffer = Direct::new(env, &buffer)?;
        STORES.get(store)?.with_rows(scan, |rows| rows.fill(&mut buffer))
    })
}

/// `static native void closeScan(long store, long scan)`; closing twice does nothing.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_closeScan(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    scan: jlong,
) {
    guard(&mut env, |_| {
        if let Ok(store) = STORES.get(store) {
            store.scans.remove(scan);
        }
        Ok(())
    })
}

/// `static native void sync(long store)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_sync(mut env: JNIEnv<'_>, _: JClass<'_>, store: jlong) {
    guard(&mut env, |_| Ok(STORES.get(store)?.db.sync()?))
}

/// `static native String statistics(long store)`, see `Store::statistics`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_statistics(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
) -> jstring {
    guard(&mut env, |env| Ok(Returned(env.new_string(STORES.get(store)?.statistics())?.into_raw()))).0
}

/// `static native String tableStatistics(long store, long table)`, see `Store::table_statistics`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_tableStatistics(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
) -> jstring {
    guard(&mut env, |env| Ok(Returned(env.new_string(STORES.get(store)?.table_statistics(table)?)?.into_raw()))).0
}

/// `static native long estimatedRows(long store, long table)`
#[unsafe(no_mangle)]
pub extern "system" fn Java_io_aiodb_store_aiodb_Native_estimatedRows(
    mut env: JNIEnv<'_>,
    _: JClass<'_>,
    store: jlong,
    table: jlong,
) -> jlong {
    guard(&mut env, |_| Ok(STORES.get(store)?.estimated_rows(table)?.try_into().unwrap_or(jlong::MAX)))
}

/// An object of the virtual machine on its way to it; null beside an exception.
struct Returned(jni::sys::jobject);

impl Default for Returned {
    fn default() -> Returned {
        Returned(std::ptr::null_mut())
    }
}
