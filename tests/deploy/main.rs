//! What deploy/ holds is what Docker, Helm, Kubernetes, Prometheus and Ansible take, and says of the
//! exporter what is true.
//!
//! No engine runs here: there is no cluster and no container. The judges are the tools themselves where
//! there is one to be had (Helm, promtool, amtool, ansible-lint, hadolint), else the published schemas.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ansible;
mod chart;
mod compose;
mod image;
mod judges;
mod manifests;
mod objects;
mod pods;
mod prometheus;
mod schemas;
