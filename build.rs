//! Linker options of a program that is optimized for size.

use std::env::var;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Relative relocations as bitmaps (DT_RELR) take 20 KB instead of 690 KB. Only the loader of glibc 2.36 and later
    // applies them, so neither the packages (profile `dist`) nor a program for another system has them.
    let is_small = var("OPT_LEVEL").is_ok_and(|level| level == "s");
    let is_for_here =
        var("TARGET").is_ok_and(|target| var("HOST").is_ok_and(|host| host == target));
    if is_small && is_for_here && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this system's glibc: `glibc 2.36`.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
