use super::*;
use crate::mad::DATA;
use crate::{counter, pma, smp};

#[test]
fn directed_get_encodes_initial_path() {
    let route = DirectedRoute::LOCAL.then(1).unwrap().then(7).unwrap();
    let mad = smp::port_info(3).request(Some(&route), 0xdead_beef);
    assert_eq!(mad.0[..4], [1, 0x81, 1, 0x01]);
    assert_eq!((mad.u8(6), mad.u8(7)), (0, 2), "hop pointer and count");
    assert_eq!(mad.transaction_id(), 0xdead_beef);
    assert_eq!((mad.attribute(), mad.modifier()), (0x15, 3));
    assert_eq!(mad.be(32, 4), 0xffff_ffff);
    assert_eq!(mad.0[128..132], [0, 1, 7, 0]);
    assert_eq!(format!("{route:?}"), "0,1,7");
}

#[test]
fn m_key_is_only_in_smps_and_can_be_redacted() {
    let key = MKey(0x0102_0304_0506_0708);
    for route in [None, Some(DirectedRoute::LOCAL)] {
        let mut mad = smp::port_info(1).with_m_key(key).request(route.as_ref(), 1);
        assert_eq!(mad.0[24..32], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(mad.m_key(), key);
        // PortInfo begins with the key.
        mad.put_be(DATA, 8, key.0);
        mad.put_be(DATA + 8, 8, 0xfe80 << 48);
        let redacted = mad.without_m_key();
        assert_eq!((redacted.m_key(), redacted.be(DATA, 8)), (MKey::NONE, 0));
        assert_eq!(redacted.0[DATA + 8..], mad.0[DATA + 8..]);
        assert_eq!(redacted.0[..24], mad.0[..24]);
    }
    let mad = pma::class_port_info().with_m_key(key).request(None, 1);
    assert_eq!((mad.0[24..32].to_vec(), mad.m_key()), (vec![0; 8], MKey::NONE));
    let node = smp::node_info().with_m_key(key).request(None, 1);
    assert_eq!(node.without_m_key().0[..], smp::node_info().request(None, 1).0[..]);
}

#[test]
fn performance_get_sets_port_select() {
    let mad = pma::class_port_info().request(None, 1);
    assert_eq!(mad.0[..4], [1, 0x04, 1, 0x01]);
    let query = pma::counters(counter::Attribute::PortCountersExtended, 36);
    let mad = query.request(None, 1);
    assert_eq!((mad.attribute(), mad.u8(65)), (0x1d, 36));
}

#[test]
fn directed_response_has_direction_bit() {
    let route = DirectedRoute::LOCAL.then(1).unwrap().then(7).unwrap();
    let mut request = smp::port_info(3).request(Some(&route), 0xdead_beef);
    request.0[6] = 2;
    request.0[100] = 0x55;
    let mut response = request.response();
    assert_eq!(response.0[..8], [1, 0x81, 1, 0x81, 0x80, 0, 0, 2]);
    assert_eq!((response.transaction_id(), response.status()), (0xdead_beef, 0));
    assert_eq!(response.data()[..64], [0; 64], "the request's data is gone");
    assert_eq!(response.route_ports(), [1, 7]);
    assert!(smp::port_info(3).matches_response(&response, true));
    response.set_status(status::UNSUPPORTED_ATTRIBUTE);
    assert_eq!(response.0[4..6], [0x80, 0x0c]);
    response.set_status(0xffff);
    response.set_status(0);
    assert_eq!(response.0[4..6], [0x80, 0], "the direction bit is kept");
}

#[test]
fn lid_routed_response_has_no_direction_bit() {
    let response = smp::port_info(3).request(None, 1).response();
    assert_eq!(response.0[..8], [1, 0x01, 1, 0x81, 0, 0, 0, 0]);
    let mut request = pma::class_port_info().request(None, 1);
    request.0[DATA..].fill(0x99);
    let mut response = request.response();
    assert_eq!(response.port_select(), 0x99);
    assert!(response.data().iter().enumerate().all(|(at, byte)| at == 1 || *byte == 0));
    response.set_status(status::INVALID_FIELD | status::DIRECTION);
    assert_eq!(response.be(4, 2), 0x001c, "no direction bit");
    assert_eq!((response.versions(), response.is_smp()), ([1, 1], false));
}

#[test]
fn oversized_hop_count_is_truncated() {
    let mut mad = smp::node_info().request(Some(&DirectedRoute::LOCAL), 1);
    assert_eq!(mad.route_ports(), [0; 0]);
    for (hops, length) in [(1, 1), (63, 63), (64, 63), (255, 63)] {
        mad.0[7] = hops;
        assert_eq!(mad.route_ports().len(), length, "{hops}");
    }
}

#[test]
fn response_must_match_request() {
    let query = smp::port_info(3);
    let mut response = query.request(None, 1);
    assert!(!query.matches_response(&response, false), "our own request");
    response.0[3] = method::GET_RESPONSE;
    assert!(query.matches_response(&response, false));
    assert!(!query.matches_response(&response, true), "another class");
    assert!(!smp::port_info(4).matches_response(&response, false), "another modifier");
    assert!(!smp::node_info().matches_response(&response, false), "another attribute");
    response.0[17] = ClassPortInfo::ID as u8;
    assert!(!query.matches_response(&response, false));
    response.0[5] = status::REDIRECT as u8;
    assert!(query.matches_response(&response, false), "a redirect");
}

#[test]
fn counters_must_be_of_the_requested_port() {
    let query = pma::counters(counter::Attribute::PortCountersExtended, 3);
    let mut response = query.request(None, 1).response();
    assert!(query.matches_response(&response, false));
    response.0[DATA + 1] = 4;
    assert!(!query.matches_response(&response, false), "another port");
    response.0[DATA + 1] = 0;
    assert!(query.matches_response(&response, false), "no port");
    response.0[DATA + 1] = 4;
    response.set_status(status::INVALID_FIELD);
    assert!(query.matches_response(&response, false), "a refusal");
    let query = pma::class_port_info();
    let mut response = query.request(None, 1).response();
    response.0[DATA + 1] = 1;
    assert!(query.matches_response(&response, false), "ClassVersion");
}
