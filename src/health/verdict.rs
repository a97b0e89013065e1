//! The verdict on a cable, and what it rests on.

/// What a cable comes to, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is sound, as far as can be measured.
    Ok,
    /// Not enough is known.
    Unknown,
    /// Not as it should be, or not yet for sure.
    Watch,
    /// A technician has to see to it.
    Bad,
}

impl Verdict {
    /// All of them, from good to bad; the place of each is its value in metrics.
    pub const ALL: [Verdict; 4] = [Verdict::Ok, Verdict::Unknown, Verdict::Watch, Verdict::Bad];

    /// One word for people.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Unknown => "unknown",
            Verdict::Watch => "watch",
            Verdict::Bad => "bad",
        }
    }
}

macro_rules! table {
    ($(#[$about:meta])* $name:ident { $($row:ident $label:literal $help:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $(#[doc = $help] $row),+ }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$row),+];

            /// As metrics and JSON write it.
            pub fn label(self) -> &'static str {
                match self { $($name::$row => $label),+ }
            }

            /// In a sentence.
            pub fn help(self) -> &'static str {
                match self { $($name::$row => $help),+ }
            }
        }
    };
}

table! {
    /// Why a link has its verdict.
    Reason {
        BitErrors "bit_errors" "More bits come in wrong than its limit allows.";
        PreFec "pre_fec" "More is mended by error correction than its limit allows.";
        Flapping "flapping" "The link went down and up again.";
        NodeFlapping "node_flapping" "The link went down, and one end alone counted it: it was the other end's node.";
        Recoveries "recoveries" "The link retrained by itself, again and again.";
        Width "width" "It runs on fewer lanes than both ends can do and are allowed.";
        Speed "speed" "It runs slower than both ends can do and are allowed.";
        Down "down" "It has no link, and the nodes at both ends are there.";
        ReceiveErrors "receive_errors" "Packets come in broken.";
        Marked "marked" "Packets come in that were spoilt on a link further upstream: the fault is not here.";
        Congested "congested" "Its receiver is slow: packets wait for credits here first.";
        Victim "victim" "Packets wait here because they wait further on.";
        Saturated "saturated" "A counter that it is judged by is full and counts no further.";
        TooShort "too_short" "It was not watched for long enough yet.";
        Unanswered "unanswered" "A node at its end does not answer.";
        Disabled "disabled" "Somebody switched one of its ports off.";
        Maintenance "maintenance" "Somebody works on it, as the list of maintenance says.";
    }
}

table! {
    /// What to try first.
    Repair {
        Reseat "reseat" "Re-seat the cable and clean its ends.";
        SwapCable "swap_cable" "Swap the cable.";
        SwapTransceiver "swap_transceiver" "Swap the transceiver at the sending end.";
        LookUpstream "look_upstream" "Look at the link upstream on which packets are spoilt.";
        LookAtHost "look_at_host" "Look at the node: its logs, its firmware, its slot.";
        Nothing "nothing" "Nothing to repair: it is congestion.";
    }
}

/// The reasons of one link, each with the verdict that it alone would bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    weights: [Option<Verdict>; Reason::ALL.len()],
}

impl Reasons {
    /// Adds one; of two weights the graver one counts.
    pub fn add(&mut self, reason: Reason, weight: Verdict) {
        let slot = &mut self.weights[reason as usize];
        *slot = (*slot).max(Some(weight));
    }

    /// The weight of one, if it is there.
    pub fn weight(&self, reason: Reason) -> Option<Verdict> {
        self.weights[reason as usize]
    }

    /// All that are there, in the table's order.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, Verdict)> + '_ {
        Reason::ALL.iter().filter_map(|&reason| Some((reason, self.weight(reason)?)))
    }

    /// The gravest of them; fine without any.
    pub fn verdict(&self) -> Verdict {
        self.weights.iter().flatten().copied().max().unwrap_or(Verdict::Ok)
    }

    /// The one that weighs most, the first in the table among equals.
    pub fn gravest(&self) -> Option<(Reason, Verdict)> {
        self.iter().reduce(|best, next| if next.1 > best.1 { next } else { best })
    }
}
