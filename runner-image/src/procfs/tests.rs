//! Files as the kernel writes them, whole and damaged.

use super::*;

fn kernel(files: &[(&str, &str)]) -> (tempfile::TempDir, Kernel) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let kernel = Kernel::under(folder.path());
    (folder, kernel)
}

#[test]
fn reads_a_process() {
    let (_folder, kernel) = kernel(&[
        ("proc/7/comm", "mariadbd\n"),
        ("proc/8/comm", "sysbench\n"),
        (
            "proc/7/stat",
            "7 (maria (d) b) S 1 7 7 0 -1 4194560 100 0 0 0 1234 66 5 7 20 0 40 0 100 1 2 3",
        ),
        (
            "proc/7/status",
            "Name:\tmariadbd\nVmRSS:\t  2048 kB\nCpus_allowed_list:\t0-1,4\n",
        ),
        (
            "proc/7/io",
            "rchar: 1\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n",
        ),
    ]);
    assert_eq!(kernel.processes(&["mariadbd", "mysqld"]), [7]);
    assert_eq!(
        kernel.process_stat("7"),
        Some(ProcessStat {
            parent: 1,
            cpu_millis: 13_000,
            children_cpu_millis: 120
        })
    );
    assert_eq!(kernel.resident_bytes(7), Some(2_097_152));
    assert_eq!(kernel.write_bytes(7), Some(8_192));
    assert_eq!(kernel.cpus_allowed("7"), Some(vec![0, 1, 4]));
    assert_eq!((kernel.write_bytes(8), kernel.process_stat("9")), (None, None));
}

#[test]
fn reads_the_node() {
    let (_folder, kernel) = kernel(&[
        (
            "proc/stat",
            "cpu  9 9 9 9\ncpu0 10 1 5 900 3 1 2 4 0 0\ncpu1 1 0 0 9 0 0 0 0 0 0\nintr 5\n",
        ),
        (
            "proc/vmstat",
            "nr_dirty 3\nnr_writeback 1\npswpin 5\npswpout 6\noom_kill 2\n",
        ),
        ("proc/meminfo", "SwapTotal:  2048 kB\nSwapFree:  1024 kB\n"),
        ("proc/cpuinfo", "processor : 0\nmodel name\t: Some CPU @ 2GHz\n"),
        (
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        ),
    ]);
    assert_eq!(kernel.cpu_busy_millis(), BTreeMap::from([(0, 230), (1, 10)]));
    assert_eq!(kernel.vmstat(&["pswpin", "pswpout"]), Some(11));
    assert_eq!(kernel.vmstat(&["oom_kill", "absent"]), None);
    assert_eq!(
        (kernel.dirty_bytes(), kernel.swap_used_bytes()),
        (Some(16_384), Some(1_048_576))
    );
    assert_eq!(kernel.cpu_model().as_deref(), Some("Some CPU @ 2GHz"));
    assert_eq!(kernel.transparent_huge_pages().as_deref(), Some("madvise"));
}

#[test]
fn reads_limits_and_throttling_of_both_cgroup_versions() {
    let (_folder, two) = kernel(&[
        ("proc/self/cgroup", "0::/\n"),
        (
            "sys/fs/cgroup/cpu.stat",
            "usage_usec 9\nnr_throttled 4\nthrottled_usec 25500\n",
        ),
        ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
    ]);
    assert_eq!(
        (two.throttled_millis("self"), two.cpu_limit_milli()),
        (Some(25), Some(500))
    );
    let (_folder, one) = kernel(&[
        ("proc/self/cgroup", "4:memory:/pod/x\n3:cpu,cpuacct:/pod/x\n"),
        (
            "sys/fs/cgroup/cpu/cpu.stat",
            "nr_periods 1\nthrottled_time 3000000000\n",
        ),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ]);
    assert_eq!(
        (one.throttled_millis("self"), one.cpu_limit_milli()),
        (Some(3_000), None)
    );
    // The root of the mount is our own group; it says nothing of another process.
    assert_eq!(one.throttled_millis("7"), None);
}

#[test]
fn knows_our_own_open_files() {
    let file = tempfile::tempfile().unwrap();
    let found = file.metadata().unwrap();
    assert!(
        Kernel::default()
            .open_files(std::process::id())
            .contains(&(found.dev(), found.ino()))
    );
}

#[test]
fn damaged_files_give_no_figures() {
    assert_eq!(cpu_list("0-4294967295"), None);
    assert_eq!(cpu_list("x"), None);
    assert_eq!(process_stat("7 (x) S"), None);
    assert_eq!(throttled("nr_throttled 4"), None);
}
