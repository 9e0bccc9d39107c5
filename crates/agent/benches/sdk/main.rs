mod traffic;
use std::path::Path;
fn main() -> anyhow::Result<()> {
    for t in traffic::Traffic::ALL {
        println!("{:?}", traffic::Recording::obtain(Path::new("target/bench"), t)?);
    }
    Ok(())
}
