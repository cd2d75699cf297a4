import MartletPlugins

/// Any bytes as a library: they are rejected with a position in the file, or what they say is bounded by their size.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    do {
        let library = try ELFLibrary(bytes, for: .x86_64)
        precondition(bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46]))
        precondition(library.defined.count + library.undefined.count <= bytes.count)
        for note in library.notes {
            precondition(note.count <= bytes.count)
            if let facts = PluginFacts(note: note) {
                precondition(facts.stamp.utf8.count <= 68 * 3 && facts.compiler.utf8.count <= 160 * 3)
            }
        }
    } catch {
        precondition(error.offset >= 0 && !error.reason.isEmpty)
    }
    let file = PluginFile(bytes: bytes, owner: 0, mode: 0o755)
    let inspection = PluginInspection(file, for: PluginHost(machine: .x86_64, user: 0))
    precondition(inspection.findings.allSatisfy { !$0.text.isEmpty })
    return 0
}
