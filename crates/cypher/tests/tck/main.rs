//! The openCypher Technology Compatibility Kit.
fn main() {}
