//! Labels of vocabularies for readers.

/// A label of a vocabulary as text: `bit_errors` as `bit errors`, `pre_fec` as `pre-FEC`.
pub fn label_text(label: &str) -> String {
    let words = match label {
        "pre_fec" => "pre-FEC",
        "master_changed" => "master_SM_changed",
        "reads_failed" => "counter_reads_failed",
        "reads_recovered" => "counter_reads_recovered",
        "clock_jump" => "clock_jumped",
        label => label,
    };
    let words = words.split('_').map(|word| match word {
        "dlid" => "DLID",
        "fec" => "FEC",
        "hoq" => "HOQ",
        "mtu" => "MTU",
        "nvlink" => "NVLink",
        "qp1" => "QP1",
        "smi" => "SMI",
        "vl" => "VL",
        "vl15" => "VL15",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_acronyms() {
        for (label, text) in [
            ("bit_errors", "bit errors"),
            ("pre_fec", "pre-FEC"),
            ("fec_corrected_blocks", "FEC corrected blocks"),
            ("vl15_dropped", "VL15 dropped"),
            ("master_changed", "master SM changed"),
        ] {
            assert_eq!(label_text(label), text);
        }
    }
}
