//! Several processes that write one store.

use super::*;

/// The child of [`processes`]: waits for a line, writes, and prints its longest wait.
pub fn worker(runtime: &Runtime, path: &Path, name: &str, count: &str) {
    let store = SqliteStore::open(path, Durability::Power).unwrap();
    let mut words = Words(name.len() as u64 + 7);
    let count: usize = count.parse().unwrap();
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut longest = Duration::ZERO;
    for n in 0..count {
        let document = file(&format!("/{name}/{}", n % 50), words.text(2048));
        let start = Instant::now();
        put(runtime, &store, vec![Write::put(document)]);
        longest = longest.max(start.elapsed());
    }
    println!("{}", longest.as_micros());
    runtime.block_on(store.close()).unwrap();
}

/// Versions a second of this number of processes together, and the longest wait of any.
fn together(processes: usize, count: usize) -> (f64, Duration) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.db");
    let mut children: Vec<_> = (0..processes)
        .map(|n| {
            Command::new(std::env::current_exe().unwrap())
                .arg("--worker")
                .arg(&path)
                .args([format!("w{n}"), count.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut lines: Vec<_> = children
        .iter_mut()
        .map(|child| std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap())))
        .collect();
    for line in &mut lines {
        assert_eq!(line.next().unwrap().unwrap(), "ready");
    }
    let start = Instant::now();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
    let mut longest = Duration::ZERO;
    for line in &mut lines {
        let micros: u64 = line.next().unwrap().unwrap().parse().unwrap();
        longest = longest.max(Duration::from_micros(micros));
    }
    let rate = (processes * count) as f64 / start.elapsed().as_secs_f64();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()), "a process failed");
    (rate, longest)
}

pub fn processes(_: &Runtime) {
    const COUNTS: [usize; 3] = [1, 2, 4];
    let mut rates = COUNTS.map(|_| Vec::new());
    let mut longest = COUNTS.map(|_| Duration::ZERO);
    // In turns, for the disk is not equally quick at all times.
    for _ in 0..rounds(7) {
        for (n, count) in COUNTS.into_iter().enumerate() {
            let (rate, wait) = together(count, 800 / count);
            rates[n].push(rate);
            longest[n] = longest[n].max(wait);
        }
    }
    let [alone, rest @ ..] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    for ((count, rate), wait) in COUNTS[1..].iter().zip(rest).zip(&longest[1..]) {
        Figure::new("G6", &format!("puts of {count} processes together"), rate, "puts/s")
            .beside("of one process", alone)
            .bounds(0.8, 0.95)
            .note(format!("no error; longest wait {wait:.0?}, alone {:.0?}", longest[0]))
            .print();
    }
}
