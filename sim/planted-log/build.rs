//! Enables the planted bugs: see `crates/log/src/plants.rs`.

fn main() {
    println!("cargo::rustc-cfg=wellspring_plants");
    println!("cargo::rerun-if-changed=build.rs");
}
