//! The pods: their privileges, their command lines, and that all objects they name exist.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::chart::of;
use crate::judges::{list, none, refused, text, texts};
use crate::objects::{self, Job, kind, kind_and_name, name};

/// The workloads of all value sets.
fn workloads() -> Vec<(&'static str, Value)> {
    let found: Vec<_> = objects::all()
        .into_iter()
        .filter(|(_, it)| matches!(kind(it), "DaemonSet" | "Deployment"))
        .collect();
    assert_eq!(found.len(), 9);
    found
}

fn pod(workload: &Value) -> &Value {
    &workload["spec"]["template"]["spec"]
}

fn container(workload: &Value) -> &Value {
    let [only] = list(workload, "/spec/template/spec/containers") else { panic!("{workload}") };
    only
}

/// A pod has no privilege that it does not need. The one exception is requested by `device.mode: privileged`.
#[test]
fn pods_have_few_privileges() {
    let mut problems = Vec::new();
    for (set, workload) in workloads() {
        let (pod, container) = (pod(&workload), container(&workload));
        let asked = set == "privileged" && kind(&workload) == "Deployment";
        let own = &container["securityContext"];
        let mut must = |what: &str, holds: bool| {
            if !holds {
                problems.push(format!("{set}: {}: {what}", kind_and_name(&workload)));
            }
        };
        must("not root", pod["securityContext"]["runAsNonRoot"] == json!(!asked));
        must("a number for its user", pod["securityContext"]["runAsUser"].is_u64());
        must(
            "seccomp",
            pod["securityContext"]["seccompProfile"] == json!({"type": "RuntimeDefault"}),
        );
        must("no capabilities", own["capabilities"] == json!({"drop": ["ALL"]}));
        must("a root that is read only", own["readOnlyRootFilesystem"] == true);
        must("no token", pod["automountServiceAccountToken"] == false);
        must("no names of services", pod["enableServiceLinks"] == false);
        must("privileged", own.get("privileged").is_some() == asked);
        // Kubernetes refuses the two together.
        must(
            "no more than it has",
            own["allowPrivilegeEscalation"] == if asked { Value::Null } else { json!(false) },
        );
        for forbidden in ["hostPID", "hostIPC", "shareProcessNamespace"] {
            must(forbidden, pod.get(forbidden).is_none());
        }
        for mount in list(container, "/volumeMounts") {
            let may_write = matches!(text(mount, "/name"), "history" | "infiniband");
            must(&format!("{mount}"), may_write || mount["readOnly"] == true);
        }
        for volume in list(pod, "/volumes").iter().filter(|it| it.get("hostPath").is_some()) {
            let path = text(volume, "/hostPath/path");
            must(path, path == "/sys" || asked && path == "/dev/infiniband");
        }
        must("a limit of memory", container["resources"]["limits"]["memory"].is_string());
        let image = text(container, "/image");
        must(
            "an image by its version",
            image.contains("@sha256:") || image.ends_with(env!("CARGO_PKG_VERSION")),
        );
    }
    none(&problems);
}

/// On the host network a port belongs to one pod: `hosts` and a fabric may share a node.
#[test]
fn host_network_is_used_only_where_needed() {
    let on = |set: &str, what: &str| pod(&of(set, what)).get("hostNetwork").is_some();
    assert!(on("default", "DaemonSet ib-fabric-exporter-hosts"));
    assert!(!on("privileged", "DaemonSet ib-fabric-exporter-hosts"));
    assert!(!on("minimal", "Deployment ib-fabric-exporter-default"));
    assert!(on("privileged", "Deployment ib-fabric-exporter-ib"));
    let service = of("privileged", "Service ib-fabric-exporter-ib");
    assert_eq!(service["spec"]["ports"][0]["port"], 10316);
}

/// No other way to the device is configured than the requested one.
#[test]
fn pods_have_access_to_the_device() {
    let plugin = of("all", "Deployment ib-fabric-exporter-storage");
    for part in ["requests", "limits"] {
        assert_eq!(container(&plugin)["resources"][part]["rdma/hca_shared_devices_a"], 1);
    }
    assert_eq!(pod(&plugin)["securityContext"]["supplementalGroups"], json!([104]));
    let own = of("privileged", "Deployment ib-fabric-exporter-ib");
    assert!(container(&own)["resources"]["limits"].get("rdma/hca_shared_devices_a").is_none());
    let mounts = list(container(&own), "/volumeMounts");
    assert!(mounts.iter().any(|it| it["mountPath"] == "/dev/infiniband"), "{mounts:?}");
    assert_eq!(pod(&own)["securityContext"]["runAsUser"], 0);
}

#[test]
fn objects_named_by_pods_exist() {
    // Not part of the release: the values name it as existing.
    let foreign = ["storage-history", "fabric-exporter-tls"];
    let mut problems = Vec::new();
    for (set, workload) in workloads() {
        let made: BTreeSet<String> = objects::of_set(set).iter().map(kind_and_name).collect();
        let (pod, container) = (pod(&workload), container(&workload));
        let mut needs = Vec::new();
        let account = text(pod, "/serviceAccountName");
        if account != "default" {
            needs.push(("ServiceAccount", account));
        }
        let mut volumes = BTreeSet::new();
        for volume in list(pod, "/volumes") {
            volumes.insert(text(volume, "/name"));
            for (kind, pointer) in [
                ("ConfigMap", "/configMap/name"),
                ("Secret", "/secret/secretName"),
                ("PersistentVolumeClaim", "/persistentVolumeClaim/claimName"),
            ] {
                needs.push((kind, text(volume, pointer)));
            }
        }
        for (kind, name) in
            needs.into_iter().filter(|(_, name)| !name.is_empty() && !foreign.contains(name))
        {
            if !made.contains(&format!("{kind} {name}")) {
                problems.push(format!("{set}: {} needs {kind} {name}", kind_and_name(&workload)));
            }
        }
        let mounted: BTreeSet<&str> =
            list(container, "/volumeMounts").iter().map(|it| text(it, "/name")).collect();
        assert_eq!(mounted, volumes, "{set}: {}", kind_and_name(&workload));
        // A volume without the group belongs to root, and these pods do not run as root.
        let secret = list(pod, "/volumes").iter().any(|it| it.get("secret").is_some());
        let kept = list(pod, "/volumes").iter().any(|it| it.get("persistentVolumeClaim").is_some());
        assert_eq!(pod["securityContext"].get("fsGroup").is_some(), secret || kept, "{set}");
    }
    none(&problems);
}

/// Services, monitors and the network policy select exactly the pods that they are meant for.
#[test]
fn selectors_match_their_pods() {
    let fits = |labels: &Value, selector: &Value| {
        selector.as_object().unwrap().iter().all(|(key, value)| labels[key] == *value)
    };
    for set in objects::outcomes().keys() {
        let objects = objects::of_set(set);
        let pods: Vec<(&str, &Value)> = objects
            .iter()
            .filter(|it| matches!(kind(it), "DaemonSet" | "Deployment"))
            .map(|it| (name(it), &it["spec"]["template"]["metadata"]["labels"]))
            .collect();
        let services: Vec<(&str, &Value)> = objects
            .iter()
            .filter(|it| kind(it) == "Service")
            .map(|it| (name(it), &it["metadata"]["labels"]))
            .collect();
        for object in &objects {
            let chosen = |among: &[(&str, &Value)], pointer: &str| -> Vec<String> {
                let selector = object.pointer(pointer).unwrap_or_else(|| panic!("{object}"));
                among
                    .iter()
                    .filter(|(_, labels)| fits(labels, selector))
                    .map(|it| it.0.to_owned())
                    .collect()
            };
            let found = match kind(object) {
                "DaemonSet" | "Deployment" => chosen(&pods, "/spec/selector/matchLabels"),
                "Service" => chosen(&pods, "/spec/selector"),
                "ServiceMonitor" => chosen(&services, "/spec/selector/matchLabels"),
                "NetworkPolicy" => {
                    assert_eq!(chosen(&pods, "/spec/podSelector/matchLabels").len(), pods.len());
                    continue;
                }
                _ => continue,
            };
            assert_eq!(found, [name(object)], "{set}: {}", kind_and_name(object));
        }
    }
}

#[test]
fn exporter_accepts_pod_command_lines() {
    let mut values = objects::sets().remove("all").unwrap();
    // The file of --web.config.file is a separate matter.
    values.as_object_mut().unwrap().remove("webConfig");
    let plain = objects::render(&[Job::new(values)]).remove(0).objects();
    let others = workloads().into_iter().filter(|(set, _)| *set != "all").map(|(_, it)| it);
    let mut seen = 0;
    for workload in plain.into_iter().chain(others) {
        if matches!(kind(&workload), "DaemonSet" | "Deployment") {
            seen += 1;
            assert_eq!(
                refused(&texts(container(&workload), "/args")),
                None,
                "{}",
                kind_and_name(&workload)
            );
        }
    }
    assert_eq!(seen, 9);
    let args = texts(container(&of("all", "DaemonSet ib-fabric-exporter-hosts")), "/args");
    assert!(args.contains(&"--web.config.file=/etc/fabric-exporter-web/web-config.yml".to_owned()));
}

/// The kubelet can neither log in nor check a certificate.
#[test]
fn probes_use_existing_endpoints() {
    let open = of("default", "DaemonSet ib-fabric-exporter-hosts");
    let probes =
        |it: &Value| ["livenessProbe", "readinessProbe"].map(|probe| container(it)[probe].clone());
    let [alive, ready] = probes(&open);
    assert_eq!(
        (text(&alive, "/httpGet/path"), text(&ready, "/httpGet/path")),
        ("/-/healthy", "/-/ready")
    );
    for probe in probes(&of("all", "DaemonSet ib-fabric-exporter-hosts")) {
        assert_eq!(probe["tcpSocket"]["port"], "http");
        assert!(probe.get("httpGet").is_none());
    }
}
