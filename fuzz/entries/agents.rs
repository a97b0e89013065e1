//! The agents of the simulated fabric: arbitrary requests.

use std::time::Duration;

use ib_mad::{LEN, Mad};
use ib_sim::agents;
use ib_sim::net::PortId;
use ib_sim::simulation::Simulation;

use super::fabric::story;
use super::input::Input;
use super::mad;

/// Number of requests of one script.
const MOST: usize = 64;

pub fn run(bytes: &[u8]) {
    let mut world = Simulation::new(story());
    let mut input = Input::new(bytes);
    for _ in 0..MOST {
        if input.is_empty() {
            return;
        }
        let ports = world.net().ports.len() as u32;
        let at = PortId(u32::from(input.u8()) % ports);
        let later = Duration::from_millis(u64::from(input.u8()) << 4);
        let length = usize::from(input.u8());
        let request = mad::of(input.bytes(length.min(LEN)));
        let now = world.now() + later;
        world.advance(now);
        let asked = agents::response(&world, at, &request);
        let obeyed = agents::execute(&mut world, at, &request);
        assert_eq!(asked.is_some(), obeyed.is_some(), "only one of them responds");
        for answer in [asked, obeyed].into_iter().flatten() {
            is_an_answer(&request, &answer);
        }
    }
}

fn is_an_answer(request: &Mad, answer: &Mad) {
    assert_eq!(answer.method(), ib_mad::method::GET_RESPONSE);
    assert_eq!(
        (answer.class(), answer.transaction_id(), answer.attribute(), answer.modifier()),
        (request.class(), request.transaction_id(), request.attribute(), request.modifier())
    );
}
