//! Enables the planted bugs: see `crates/journals/raft/src/plants.rs`.

fn main() {
    println!("cargo::rustc-cfg=wellspring_plants");
    println!("cargo::rerun-if-changed=build.rs");
}
