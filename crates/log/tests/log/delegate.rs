//! What storages of tests leave to the storage below them.

/// Writes the methods of a `Storage` or `StorageFile` that do what the same method of a field does.
macro_rules! delegate {
    ($to:tt: $($method:ident)+) => { $(delegate!(@$method $to);)+ };
    (@name $to:tt) => { delegate!($to.name() -> String); };
    (@lock $to:tt) => { delegate!($to.lock() -> std::io::Result<()>); };
    (@unlock $to:tt) => { delegate!($to.unlock() -> ()); };
    (@require_folder $to:tt) => { delegate!($to.require_folder() -> std::io::Result<()>); };
    (@still_locked $to:tt) => { delegate!($to.still_locked() -> std::io::Result<()>); };
    (@list $to:tt) => { delegate!($to.list() -> std::io::Result<Vec<String>>); };
    (@file_bytes $to:tt) => { delegate!($to.file_bytes(name: &str) -> std::io::Result<u64>); };
    (@open $to:tt) => { delegate!($to.open(name: &str) -> std::io::Result<Arc<dyn StorageFile>>); };
    (@create $to:tt) => {
        delegate!($to.create(name: &str) -> std::io::Result<Arc<dyn StorageFile>>);
    };
    (@rename $to:tt) => { delegate!($to.rename(from: &str, to: &str) -> std::io::Result<()>); };
    (@remove $to:tt) => { delegate!($to.remove(name: &str) -> std::io::Result<()>); };
    (@sync_dir $to:tt) => { delegate!($to.sync_dir() -> std::io::Result<()>); };
    (@read_at $to:tt) => {
        delegate!($to.read_at(buf: &mut [u8], offset: u64) -> std::io::Result<usize>);
    };
    (@write_all_at $to:tt) => {
        delegate!($to.write_all_at(bytes: &[u8], offset: u64) -> std::io::Result<()>);
    };
    (@len $to:tt) => { delegate!($to.len() -> std::io::Result<u64>); };
    (@set_len $to:tt) => { delegate!($to.set_len(len: u64) -> std::io::Result<()>); };
    ($to:tt.$method:ident($($given:ident: $type:ty),*) -> $result:ty) => {
        fn $method(&self, $($given: $type),*) -> $result {
            self.$to.$method($($given),*)
        }
    };
}
