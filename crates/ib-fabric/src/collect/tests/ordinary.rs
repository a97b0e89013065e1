//! What a fabric without planes is asked: directed routes of sweeps cost it nothing.

use super::*;

/// Us, two switches, and five hosts at each.
fn two_leaves() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1), (SWITCH, 8), (SWITCH, 8)];
    kinds.extend([(CA, 1); 10]);
    let mut links = vec![((0, 1), (1, 8)), ((1, 7), (2, 7))];
    links.extend((0..10).map(|n| ((1 + n / 5, (n % 5) as u8 + 1), (3 + n, 1))));
    let mut nodes = fabric(&kinds, &links);
    nodes[2].state_table = true;
    nodes[4].fec = Some(2);
    ScriptedTransport::new(nodes)
}

/// The number of MADs, and a digest of their addresses and contents, in order.
fn digest(transport: &ScriptedTransport) -> (usize, u64) {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    for sent in &transport.sent {
        // Without the transaction id.
        let bytes = sent.mad.0[..8].iter().chain(&sent.mad.0[16..]).copied();
        for byte in bytes.chain(sent.lid.0.to_be_bytes()) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    (transport.sent.len(), digest)
}

#[test]
fn ordinary_fabric_gets_the_same_requests_as_ever() {
    let mut transport = two_leaves();
    let fabric = assembled(&mut transport);
    let mut all = vec![digest(&transport)];
    let mut agents = AgentCache::new(FEC);
    for _ in 0..3 {
        transport.sent.clear();
        swept(&mut transport, &fabric, &mut agents);
        all.push(digest(&transport));
    }
    transport.sent.clear();
    swept_confirming(&mut transport, &fabric, &mut agents);
    all.push(digest(&transport));
    let expected = [
        (57, 6_482_835_970_886_140_998),
        (102, 13_229_096_941_901_620_293),
        (88, 8_499_555_017_133_804_720),
        (83, 16_883_878_737_880_326_176),
        (95, 11_086_915_091_215_953_048),
    ];
    assert_eq!(all, expected);
}
