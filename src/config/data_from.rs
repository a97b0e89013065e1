//! Where a fabric's data is from, if not from MADs.

use std::path::PathBuf;
use std::time::Duration;

use crate::remote::{Access, Remote, parse_uri};

/// What another program collects.
#[derive(Clone, Debug)]
pub enum DataFrom {
    /// Endpoints of UFM Telemetry, and the login. Counters are from the first one.
    Endpoints(Vec<EndpointUrl>, Access),
    /// A directory that ibdiagnet or other tools write to.
    Directory(PathBuf),
}

/// The URL of an endpoint in two parts: a query may follow the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl {
    /// `http://user@ufm:9001`
    pub server: String,
    /// `/csv/xcset/low_freq_debug`
    pub path: String,
}

impl EndpointUrl {
    fn parse(url: &str) -> Result<EndpointUrl, String> {
        let wrong = || {
            format!(
                "{url:?} is not a URL such as http://ufm:9001/csv/xcset/low_freq_debug, nor a directory"
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let server = format!("{scheme}://{authority}");
        let second = Duration::from_secs(1);
        let is_server = Remote::new(&server, &Access::default(), second, second).is_ok();
        let is_path = path.starts_with('/') && !path.contains('#');
        if !is_server || !is_path || parse_uri(&format!("http://h{path}")).is_none() {
            return Err(wrong());
        }
        Ok(EndpointUrl { server, path: path.to_owned() })
    }

    /// Its TCP port.
    pub fn port(&self) -> Option<u16> {
        let remote = Remote::new(&self.server, &Access::default(), Duration::ZERO, Duration::ZERO);
        remote.ok().map(|remote| remote.port())
    }
}

impl DataFrom {
    /// Reads URLs, separated by blanks, or a directory.
    pub fn parse(text: &str, access: Access) -> Result<DataFrom, String> {
        if text.contains("://") {
            let urls = text.split_whitespace().map(EndpointUrl::parse);
            return Ok(DataFrom::Endpoints(urls.collect::<Result<_, _>>()?, access));
        }
        if text.is_empty() {
            return Err("it must not be empty".into());
        }
        Ok(DataFrom::Directory(text.into()))
    }

    /// As messages call it: without passwords.
    pub fn name(&self) -> String {
        match self {
            DataFrom::Endpoints(urls, _) => {
                let public = |url: &EndpointUrl| {
                    let (scheme, authority) = url.server.split_once("://").unwrap_or_default();
                    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                    format!("{scheme}://{host}{}", url.path)
                };
                urls.iter().map(public).collect::<Vec<_>>().join(" ")
            }
            DataFrom::Directory(path) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_directories_are_told_apart() {
        let parse = |text: &str| DataFrom::parse(text, Access::default());
        let two = "http://u:secret@ufm:9001/csv/xcset/a?num_shards=3&shard=0 https://[2001:db8::1]/metrics";
        let found = parse(two).unwrap();
        assert_eq!(
            found.name(),
            "http://ufm:9001/csv/xcset/a?num_shards=3&shard=0 https://[2001:db8::1]/metrics"
        );
        let DataFrom::Endpoints(urls, _) = found else { panic!("endpoints") };
        assert_eq!(urls.iter().map(EndpointUrl::port).collect::<Vec<_>>(), [Some(9001), Some(443)]);
        assert!(matches!(parse("/var/tmp/ibdiagnet2"), Ok(DataFrom::Directory(_))));
        for text in
            ["", "http://", "ftp://ufm/csv", "http://ufm:9001", "http://ufm:x/csv", "http://u/a#b"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
