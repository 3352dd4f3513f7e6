use vramscope_report::FileReader;
fn main() {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path).unwrap();
        let mut r = FileReader::new(&path, data.len() as u64);
        r.feed(&data).unwrap();
        let f = r.finish().ok().unwrap();
        for (ei, e) in f.entries.iter().enumerate() {
            for i in 0..e.traces.len() {
                let spans = e.categories(i).phases();
                println!(
                    "== {path} dev {i} events {} peak {:?}",
                    e.traces[i].device.events.len(),
                    e.traces[i].requested_band.peak_event
                );
                let s: Vec<String> = spans
                    .iter()
                    .take(60)
                    .map(|s| format!("{}{}-{}", &s.phase.name()[..1], s.begin, s.end))
                    .collect();
                println!("{}", s.join(" "));
                println!(
                    "{:?}",
                    e.steps(i).map(|s| (
                        s.source,
                        s.whole(),
                        s.begins.iter().take(40).collect::<Vec<_>>()
                    ))
                );
            }
        }
    }
}
