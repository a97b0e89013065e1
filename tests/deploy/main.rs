//! The files in deploy/ and the workflows are valid for Docker, Helm, Kubernetes, Prometheus and Ansible, and match the
//! exporter.
//!
//! Nothing is deployed: there is no container, and no cluster but one of Slurm on the loopback. The tools themselves
//! check the files where possible (Helm, promtool, amtool, ansible-lint, hadolint, zizmor), else the published schemas.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ansible;
mod chart;
mod compose;
mod drain_on_alert;
mod image;
mod judges;
mod manifests;
mod node_checks;
mod objects;
mod pods;
mod prometheus;
mod schemas;
mod slurm;
mod umad;
mod workflows;
