import MartletCore
import MartletSession

/// A token as a client would send it: what is read is written back as it came.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSessionToken(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let text = unsafe Array(UnsafeBufferPointer(start: data, count: count))
    let read = SessionToken.Kind.allCases.compactMap { kind in SessionToken(text, kind: kind) }
    precondition(read.count <= 1, "a token of both kinds")
    for token in read {
        precondition(token.text.withBytes { $0 == text }, "a second spelling")
        precondition(text.count <= 128 && text.allSatisfy { (0x21...0x7E).contains($0) })
    }
    return 0
}
