//! Forward error correction (FEC) modes of links.

macro_rules! modes {
    ($($mode:ident $code:literal $label:literal $help:literal;)+) => {
        /// FEC mode of a link.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fec { $(#[doc = $help] $mode),+ }

        impl Fec {
            /// All modes.
            pub const ALL: &[Fec] = &[$(Fec::$mode),+];

            /// The mode with this code in FECModeActive; `None` for a reserved code.
            pub fn from_code(code: u16) -> Option<Fec> {
                match code {
                    $($code => Some(Fec::$mode),)+
                    _ => None,
                }
            }

            /// FECModeActive.
            pub fn code(self) -> u16 {
                match self { $(Fec::$mode => $code),+ }
            }

            /// Name in the config file.
            pub fn label(self) -> &'static str {
                match self { $(Fec::$mode => $label),+ }
            }
        }
    };
}

// 0 to 4: IBTA, FECModeActive of PortInfoExtended. 8 to 14: Mellanox, with the names of ibdiagnet; 5 to 7 and
// 15 are reserved.
modes! {
    None 0 "none" "No FEC.";
    FireCode 1 "fire-code" "Fire code, used by FDR.";
    ReedSolomon 2 "rs" "Reed-Solomon.";
    LowLatency 3 "ll-rs" "Reed-Solomon with low latency.";
    ReedSolomon2 4 "rs2" "The second Reed-Solomon code: RS(544,514).";
    StrongReedSolomon 8 "strong-rs" "Strong Reed-Solomon.";
    MellanoxLowLatency 9 "mlx-ll-rs" "Reed-Solomon with low latency, of Mellanox.";
    Adaptive 10 "adaptive-rs" "Adaptive Reed-Solomon.";
    Cod 11 "cod" "COD, with Reed-Solomon counters.";
    ZeroLatency 12 "zero-latency" "Zero latency, not Reed-Solomon.";
    Rs544Plr 13 "rs-544-plr" "RS(544,514), with physical layer retransmission (PLR).";
    Rs271Plr 14 "rs-271-plr" "RS(271,257), with physical layer retransmission (PLR).";
}

impl Fec {
    /// Whether the port has Reed-Solomon counters: symbols and blocks of the whole port. ibdiagnet uses the
    /// same codes.
    pub fn is_reed_solomon(self) -> bool {
        !matches!(self, Fec::None | Fec::FireCode | Fec::ZeroLatency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fec_codes_of_copper_cables_are_known() {
        // 186 of 190 ends of copper cables had 14; 3 is usual for short ones at EDR.
        for code in [2, 3, 4, 8, 9, 10, 11, 12, 13, 14] {
            assert!(Fec::from_code(code).is_some(), "{code}");
        }
        let reed_solomon = |code| Fec::from_code(code).is_some_and(Fec::is_reed_solomon);
        for code in 0..16 {
            let is = matches!(code, 2 | 3 | 4 | 8 | 9 | 10 | 11 | 13 | 14);
            assert_eq!(reed_solomon(code), is, "{code}");
        }
        for code in [5, 6, 7, 15, 16] {
            assert_eq!(Fec::from_code(code), None, "{code} is reserved");
        }
    }
}
