//! The classes of links and switches, by which the map is colored: a mask gives each a class, or none where its value
//! is not known. The map knows no more of a mask than this.

use std::collections::HashMap;

use fabric_api::{FabricView, LinkRow};
use ib_fabric::topology::LinkId;
use ib_mad::Guid;

/// The place of a step in its scale. A later one is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(pub usize);

/// How a class looks. The style sheet gives each a color, and a width or dashes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Ok,
    Learning,
    Watch,
    Bad,
    /// The steps of a measured value, from the thinnest line to the thickest.
    Step0,
    Step1,
    Step2,
    Step3,
    Step4,
    /// No class.
    Unknown,
}

impl Look {
    /// The steps of a measured value.
    pub const STEPS: [Look; 5] = [Look::Step0, Look::Step1, Look::Step2, Look::Step3, Look::Step4];

    /// Its name in the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Look::Ok => "ok",
            Look::Learning => "learning",
            Look::Watch => "watch",
            Look::Bad => "bad",
            Look::Step0 => "s0",
            Look::Step1 => "s1",
            Look::Step2 => "s2",
            Look::Step3 => "s3",
            Look::Step4 => "s4",
            Look::Unknown => "unknown",
        }
    }
}

/// A step of a scale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub look: Look,
    /// At most four letters that say it without color; empty for what needs no attention.
    pub sign: &'static str,
    /// What the legend calls it.
    pub label: String,
}

/// The classes of a mask, and what its legend says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The least bad first; at most [`MAX_STEPS`].
    pub steps: Vec<Step>,
    /// How many of the first steps need no attention: what is not known comes before them.
    pub harmless: usize,
    /// Why a link has no class.
    pub unknown: &'static str,
    /// What else there is to know: the window, what was not recorded.
    pub notes: Vec<String>,
}

/// The most steps of a scale: as many as there are speeds.
pub const MAX_STEPS: usize = 9;

/// The class of each link and node that has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coloring {
    pub scale: Scale,
    links: HashMap<LinkId, Class>,
    nodes: HashMap<Guid, Class>,
}

impl Coloring {
    /// The classes by the ids of links and the GUIDs of nodes.
    pub fn new(scale: Scale, links: HashMap<LinkId, Class>, nodes: HashMap<Guid, Class>) -> Self {
        Coloring { scale, links, nodes }
    }

    /// Asks for the class of each link of a fabric.
    pub fn of_links<'a>(
        scale: Scale,
        view: FabricView<'a>,
        class: impl Fn(&LinkRow<'a>) -> Option<Class>,
    ) -> Self {
        let links = view.links().filter_map(|link| Some((id(&link)?, class(&link)?)));
        let links = links.collect();
        Coloring::new(scale, links, HashMap::new())
    }

    /// The same with classes of nodes.
    #[must_use]
    pub fn with_nodes(self, nodes: HashMap<Guid, Class>) -> Self {
        Coloring { nodes, ..self }
    }

    pub fn link(&self, link: &LinkRow<'_>) -> Option<Class> {
        self.links.get(&id(link)?).copied()
    }

    pub fn node(&self, guid: Guid) -> Option<Class> {
        self.nodes.get(&guid).copied()
    }

    pub fn look(&self, class: Option<Class>) -> Look {
        self.step(class).map_or(Look::Unknown, |step| step.look)
    }

    /// What says a class without color.
    pub fn sign(&self, class: Option<Class>) -> &'static str {
        match class {
            None => "?",
            Some(_) => self.step(class).map_or("", |step| step.sign),
        }
    }

    fn step(&self, class: Option<Class>) -> Option<&Step> {
        self.scale.steps.get(class?.0)
    }

    /// The class that is shown of several: the worst one. What is not known comes before what needs no attention: a box
    /// with one idle link and 19 unknown ones is not idle.
    pub fn worst(&self, tally: &Tally) -> Option<Class> {
        let worst = tally.counts.iter().rposition(|count| *count > 0).map(Class);
        worst.filter(|worst| tally.unknown == 0 || worst.0 >= self.scale.harmless)
    }
}

fn id(link: &LinkRow<'_>) -> Option<LinkId> {
    link.view.snapshot.fabric.link_id(link.cable.low)
}

/// The number of links by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub counts: [usize; MAX_STEPS],
    pub unknown: usize,
}

impl Tally {
    pub fn add(&mut self, class: Option<Class>) {
        match class.and_then(|class| self.counts.get_mut(class.0)) {
            Some(count) => *count += 1,
            None => self.unknown += 1,
        }
    }

    #[must_use]
    pub fn and(mut self, other: &Tally) -> Tally {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.unknown += other.unknown;
        self
    }

    pub fn total(&self) -> usize {
        self.counts.iter().sum::<usize>() + self.unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_comes_before_what_needs_no_attention() {
        let step = |sign| Step { look: Look::Step0, sign, label: String::new() };
        let steps = vec![step("0"), step("1"), step("2")];
        let scale = Scale { steps, harmless: 1, unknown: "", notes: Vec::new() };
        let coloring = Coloring::new(scale, HashMap::new(), HashMap::new());
        for (classes, worst) in [
            (&[][..], None),
            (&[Some(0), Some(0)], Some(Class(0))),
            (&[Some(0), None], None),
            (&[Some(1), None, Some(0)], Some(Class(1))),
            (&[Some(2), Some(1)], Some(Class(2))),
            // No step of the scale.
            (&[Some(99)], None),
        ] {
            let mut tally = Tally::default();
            for class in classes {
                tally.add(class.map(Class));
            }
            assert_eq!(coloring.worst(&tally), worst, "{classes:?}");
            assert_eq!(tally.total(), classes.len());
        }
        assert_eq!((coloring.sign(None), coloring.look(None)), ("?", Look::Unknown));
    }
}
