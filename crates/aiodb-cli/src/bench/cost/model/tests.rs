use super::*;

/// The paper's figures: a core copies 256K values of 4 KiB a second, the device gives 375K.
fn rates() -> Rates {
    Rates {
        memory: vec![(0.0, 1e6), (4096.0, 256e3)],
        device_gets_per_s: 375e3,
        device_value_bytes: 4096.0,
        device_cpu_us_per_get: 4.0,
    }
}

fn prices() -> Prices {
    Prices {
        dram_usd_per_gb: 4.0,
        ssd_usd_per_gb: 0.1,
        node_usd: 1000.0,
        node_cores: 8.0,
        node_memory_bytes: 100.0 * GB,
        node_devices: 4.0,
        device_bytes: 1000.0 * GB,
        memory_overhead_bytes: 0.0,
        index_bytes: 10.0,
        ssd_space_factor: 1.25,
    }
}

fn requirement(data_gb: f64, gets_per_s: f64) -> Requirement {
    Requirement { data_bytes: data_gb * GB, gets_per_s, key_bytes: 8.0, value_bytes: 4088.0 }
}

#[test]
fn a_copy_takes_longer_by_the_byte() {
    let rates = rates();
    assert_eq!(rates.memory_gets_per_s(0.0), Some(1e6));
    assert!((rates.memory_gets_per_s(4096.0).unwrap() - 256e3).abs() < 1e-3);
    let seconds = |bytes| 1.0 / rates.memory_gets_per_s(bytes).unwrap();
    assert!((seconds(2048.0) - (1e-6 + 1.0 / 256e3) / 2.0).abs() < 1e-12, "half of the bytes, half of the time more");
    assert!((seconds(8192.0) - (2.0 / 256e3 - 1e-6)).abs() < 1e-12, "beyond the measured sizes as between them");
}

#[test]
fn one_measured_size_says_nothing_about_others() {
    let rates = Rates { memory: vec![(4096.0, 256e3)], ..rates() };
    assert_eq!(rates.memory_gets_per_s(4096.0), None);
    assert_eq!(in_memory(requirement(1.0, 1.0), &rates, &prices()), None);
    assert_eq!(Rates { memory: Vec::new(), ..rates }.memory_gets_per_s(1.0), None);
}

#[test]
fn a_noisy_measurement_promises_no_more_than_was_measured() {
    let rates = Rates { memory: vec![(0.0, 1e6), (64.0, 1.2e6)], ..rates() };
    assert!((rates.memory_gets_per_s(4096.0).unwrap() - 1.2e6).abs() < 1e-3);
}

#[test]
fn a_device_gives_its_rate_up_to_the_measured_size_and_its_bandwidth_above() {
    let rates = rates();
    assert_eq!(rates.device_gets_per_s(100.0), 375e3);
    assert_eq!(rates.device_gets_per_s(4096.0), 375e3);
    assert_eq!(rates.device_gets_per_s(16_384.0), 375e3 / 4.0);
}

#[test]
fn memory_is_bought_by_the_gigabyte_and_nodes_whole() {
    let by_bytes = in_memory(requirement(250.0, 1000.0), &rates(), &prices()).unwrap();
    assert_eq!((by_bytes.nodes, by_bytes.bound), (3.0, Bound::Memory));
    assert!((by_bytes.usd - (3.0 * 1000.0 + 250.0 * 4.0)).abs() < 1e-6);
    // A core does about 256K, a node with eight of them 2.05M.
    let by_rate = in_memory(requirement(1.0, 10e6), &rates(), &prices()).unwrap();
    assert_eq!((by_rate.nodes, by_rate.bound), (5.0, Bound::Cores));
    let with_overhead = Prices { memory_overhead_bytes: 4096.0, ..prices() };
    let twice = in_memory(requirement(250.0, 1000.0), &rates(), &with_overhead).unwrap();
    assert!((twice.memory_bytes - 500.0 * GB).abs() < 5000.0);
}

#[test]
fn ssds_are_bought_whole_and_index_memory_is_added() {
    let by_space = on_ssd(requirement(4096.0, 1000.0), &rates(), &prices());
    assert_eq!((by_space.devices, by_space.nodes, by_space.bound), (6.0, 2.0, Bound::DeviceSpace));
    // 4.096e12 bytes are 1e9 pairs, with 10 bytes of index each.
    assert_eq!(by_space.memory_bytes, 10.0 * GB);
    assert!((by_space.usd - (2.0 * 1000.0 + 6.0 * 100.0 + 40.0)).abs() < 1e-6);

    let by_reads = on_ssd(requirement(1.0, 1e6), &rates(), &prices());
    assert_eq!((by_reads.devices, by_reads.nodes, by_reads.bound), (3.0, 1.0, Bound::DeviceReads));

    let slow_cores = Rates { device_cpu_us_per_get: 100.0, ..rates() };
    let by_cores = on_ssd(requirement(1.0, 1e6), &slow_cores, &prices());
    assert_eq!((by_cores.nodes, by_cores.bound), (13.0, Bound::Cores));
    assert_eq!(by_cores.devices, 13.0, "every node has a device");

    let large_index = Prices { index_bytes: 4096.0, ..prices() };
    assert_eq!(on_ssd(requirement(1000.0, 1.0), &rates(), &large_index).bound, Bound::Memory);
}

#[test]
fn costs_cross_where_reads_need_more_devices_than_memory_costs() {
    // 100 GB: a node and 400 USD of memory, against a node and 100 USD for each SSD: four of them cost as much, but
    // the index has a little memory, so already the fourth tips it.
    let data = requirement(100.0, 0.0);
    let found = crossing(data, &rates(), &prices()).unwrap();
    assert!((3.0 * 375e3..3.0 * 375e3 * 1.02).contains(&found), "{found}");
    let below = Requirement { gets_per_s: found / 1.02, ..data };
    assert!(on_ssd(below, &rates(), &prices()).usd < in_memory(below, &rates(), &prices()).unwrap().usd);
}

#[test]
fn little_data_belongs_into_memory_and_much_never() {
    assert_eq!(crossing(requirement(1.0, 0.0), &rates(), &prices()), Some(1.0));
    let fast_device = Rates { device_gets_per_s: 1e12, device_cpu_us_per_get: 1.0, ..rates() };
    assert_eq!(crossing(requirement(1000.0, 0.0), &fast_device, &prices()), None);
}
