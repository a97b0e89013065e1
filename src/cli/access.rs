//! The login for an exporter that is asked over HTTP.

use std::path::PathBuf;

use clap::Args;

use crate::remote::Access;

/// What opens the door of who is asked.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_field_names, reason = "they are called as the flags are")]
pub struct AccessArgs {
    /// PEM file with the CAs that are trusted where an https:// address is asked [default: the system's]
    #[arg(long = "source.ca-file", value_name = "FILE", global = true)]
    ca_file: Option<PathBuf>,
    /// PEM file with the certificate that is shown to who is asked
    #[arg(long = "source.cert-file", value_name = "FILE", global = true)]
    cert_file: Option<PathBuf>,
    /// PEM file with the key of that certificate
    #[arg(long = "source.key-file", value_name = "FILE", global = true)]
    key_file: Option<PathBuf>,
    /// File with the password of the user that stands in the address, as in https://USER@HOST:10315
    #[arg(long = "source.password-file", value_name = "FILE", global = true)]
    password_file: Option<PathBuf>,
}

impl From<AccessArgs> for Access {
    fn from(args: AccessArgs) -> Self {
        let AccessArgs { ca_file, cert_file, key_file, password_file } = args;
        Access { ca_file, cert_file, key_file, password_file }
    }
}
