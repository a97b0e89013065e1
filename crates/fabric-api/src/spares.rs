//! Which cables and transceivers the present advice needs as spares, by part number; and how many there are of each
//! part.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ib_health::Verdict;
use ib_health::verdict::Repair;

use crate::model::{End, Link, PartSum, PortModule, Spare, SpareLink};

const CABLE: &str = "cable";
const TRANSCEIVER: &str = "transceiver";

/// The spares that links need now, the most needed first.
pub fn spares<'a>(links: impl Iterator<Item = &'a Link>) -> Vec<Spare> {
    let mut needed: BTreeMap<(Option<String>, &'static str), Vec<SpareLink>> = BTreeMap::new();
    for link in links {
        let Some((what, end)) = replaced(link) else { continue };
        let part = end.and_then(|end| end.part_number.clone());
        needed.entry((part, what)).or_default().push(SpareLink {
            fabric: link.fabric.clone(),
            link: link.link.clone(),
            ends: link.ends.each_ref().map(End::label),
            verdict: link.verdict.clone(),
            serial_number: end.and_then(|end| end.serial_number.clone()),
        });
    }
    let mut spares: Vec<Spare> = needed
        .into_iter()
        .map(|((part_number, what), links)| Spare {
            part_number,
            what: what.into(),
            needed: links.len(),
            links,
        })
        .collect();
    spares.sort_by_key(|spare| Reverse(spare.needed));
    spares
}

/// What the advice for a link replaces, and the end whose cable or module it is. The fiber between two transceivers has
/// no end: it reports nothing.
fn replaced(link: &Link) -> Option<(&'static str, Option<&End>)> {
    let repair = link.repair.as_ref().and_then(|it| Repair::from_label(&it.repair))?;
    let [a, b] = &link.ends;
    let is_one = match (&a.serial_number, &b.serial_number) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let known = if a.part_number.is_some() { a } else { b };
    match repair {
        Repair::SwapCable => Some((CABLE, is_one.then_some(known))),
        // A cable has its transceivers at its ends.
        Repair::SwapTransceiver if is_one && a.serial_number.is_some() => {
            Some((CABLE, Some(known)))
        }
        // The end that sends to the one with the errors.
        Repair::SwapTransceiver => {
            let sender = if a.local_errors() > b.local_errors() { b } else { a };
            Some((TRANSCEIVER, Some(sender)))
        }
        _ => None,
    }
}

/// How many ports report each part number, and the verdicts of their links; the worst first.
pub fn parts<'a>(modules: impl Iterator<Item = &'a PortModule>) -> Vec<PartSum> {
    let mut sums: BTreeMap<(String, String), (PartSum, BTreeSet<String>)> = BTreeMap::new();
    for PortModule { module, verdict, .. } in modules {
        let key = (module.part_number.clone(), module.vendor.clone());
        let (sum, serials) = sums.entry(key).or_insert_with(|| {
            let (part_number, vendor) = (module.part_number.clone(), module.vendor.clone());
            let kind = module.kind.clone();
            (PartSum { part_number, vendor, kind, ..PartSum::default() }, BTreeSet::new())
        });
        sum.ports += 1;
        serials.insert(module.serial_number.clone());
        let has = |it: Verdict| verdict.as_deref() == Some(it.label());
        sum.bad += usize::from(has(Verdict::Bad));
        sum.watch += usize::from(has(Verdict::Watch));
    }
    let sum =
        |(sum, serials): (PartSum, BTreeSet<String>)| PartSum { pieces: serials.len(), ..sum };
    let mut sums: Vec<PartSum> = sums.into_values().map(sum).collect();
    sums.sort_by(|a, b| {
        let severity = |sum: &PartSum| Reverse((sum.bad, sum.watch, sum.ports));
        severity(a).cmp(&severity(b)).then_with(|| a.part_number.cmp(&b.part_number))
    });
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Module, SuggestedRepair};

    fn link(
        repair: Repair,
        parts: [Option<&str>; 2],
        serials: [&str; 2],
        errors: [u64; 2],
    ) -> Link {
        let mut link = Link {
            repair: Some(SuggestedRepair {
                repair: repair.label().into(),
                description: repair.help().into(),
            }),
            ..Link::default()
        };
        for (place, end) in link.ends.iter_mut().enumerate() {
            end.part_number = parts[place].map(Into::into);
            end.serial_number = Some(serials[place].to_owned()).filter(|it| !it.is_empty());
            end.counters = [("symbol_errors".into(), errors[place])].into();
        }
        link
    }

    #[test]
    fn spares_are_counted_by_part_number() {
        use Repair::{Reseat, SwapCable, SwapTransceiver};
        let [cable, other] = [[Some("C"), Some("C")], [Some("T1"), Some("T2")]];
        let links = [
            link(SwapCable, cable, ["1", "1"], [5, 0]),
            link(SwapCable, cable, ["2", "2"], [5, 0]),
            link(Reseat, cable, ["3", "3"], [5, 0]),
            // The fiber between two modules; nothing is known; one end is read; the sender of what is received bad.
            link(SwapCable, other, ["4", "5"], [5, 0]),
            link(SwapCable, [None, None], ["", ""], [5, 0]),
            link(SwapCable, [None, Some("C")], ["", "6"], [5, 0]),
            link(SwapTransceiver, other, ["7", "8"], [5, 0]),
            link(SwapTransceiver, other, ["9", "10"], [0, 5]),
        ];
        let spares = spares(links.iter());
        let told =
            |it: &Spare| (it.part_number.clone().unwrap_or_default(), it.what.clone(), it.needed);
        let told: Vec<_> = spares.iter().map(told).collect();
        let expected =
            [("C", CABLE, 3), ("", CABLE, 2), ("T1", TRANSCEIVER, 1), ("T2", TRANSCEIVER, 1)];
        assert_eq!(told, expected.map(|(part, what, needed)| (part.into(), what.into(), needed)));
        assert_eq!(spares[0].links[2].serial_number.as_deref(), Some("6"));
    }

    #[test]
    fn part_numbers_are_summed_worst_first() {
        let module = |part: &str, serial: &str, verdict: Option<Verdict>| PortModule {
            module: Module {
                part_number: part.into(),
                serial_number: serial.into(),
                ..Module::default()
            },
            verdict: verdict.map(|it| it.label().into()),
            ..PortModule::default()
        };
        let modules = [
            module("A", "1", Some(Verdict::Ok)),
            module("A", "1", Some(Verdict::Ok)),
            module("B", "2", Some(Verdict::Watch)),
            module("C", "3", Some(Verdict::Bad)),
            module("C", "4", None),
        ];
        let told = parts(modules.iter()).into_iter();
        let told = told.map(|it| (it.part_number, it.ports, it.pieces, it.bad, it.watch));
        let expected = [("C", 2, 2, 1, 0), ("B", 1, 1, 0, 1), ("A", 2, 1, 0, 0)];
        let expected = expected.map(|(part, a, b, c, d)| (part.to_owned(), a, b, c, d));
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
