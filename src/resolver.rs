//! How libc resolves host names.
#![allow(unsafe_code)] // of libc: a setting

/// Makes the static program resolve names by `/etc/hosts` and DNS alone.
///
/// `/etc/nsswitch.conf` can name more modules, such as `myhostname`. libc would load them from this system, where they
/// belong to another release of glibc, and then a static program can crash.
pub fn use_hosts_file_and_dns() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    {
        use std::ffi::{c_char, c_int};

        unsafe extern "C" {
            /// Of `<nss.h>`: uses these services for the database, whatever the configuration says.
            fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
        }
        // SAFETY: libc reads the two strings, before the first other thread starts. It fails only without memory.
        unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}
