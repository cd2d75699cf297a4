import MartletAudit
import MartletCrypto

/// Lines of any bytes, in two files: whatever they are, there is a result, and no key of the lines' own is trusted.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    let whole = result([bytes[...]], trusting: [])
    for cut in [0, count / 3, count / 2] {
        let found = result([bytes[..<cut], bytes[cut...]], trusting: [])
        precondition(found == whole, "the pieces that lines come in make a difference")
    }
    let distrusted = result([bytes[...]], trusting: [trusted])
    precondition(!distrusted.isGood, "a line is accepted that the key has not signed")
    return 0
}

private let trusted: PublicKey = {
    guard let key = try? AuditKey() else { preconditionFailure("no key") }
    return key.publicKey
}()

/// Reads pieces of one file.
private func result(_ pieces: [ArraySlice<UInt8>], trusting keys: [PublicKey]) -> AuditResult {
    var verifier = AuditVerifier(trusting: keys)
    verifier.begin(file: "a")
    var splitter = LineSplitter(maximumBytes: AuditLine.maximumBytes)
    for piece in pieces { splitter.add(piece) { verifier.take($0) } }
    if let rest = splitter.rest { verifier.take(rest, isTerminated: false) }
    let found = verifier.finish()
    precondition(found.isGood == (found.finding == nil) && found.lines >= found.heads)
    _ = found.document
    return found
}
