import MartletCore
import MartletHTTP

/// The input's parts, separated by NUL: `Signature-Input`, `Signature`, the target's path and query, field lines.
///
/// Whatever they are, the base of a request has a line for each component and one more, and parses as what was signed.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    let parts = bytes.split(separator: 0, maxSplits: 3, omittingEmptySubsequences: false).map { Array($0) }
    func part(_ index: Int) -> [UInt8] { index < parts.count ? parts[index] : [] }
    _ = try? ContentDigest(part(1))
    guard let signature = try? MessageSignature(input: part(0), signature: part(1)) else { return 0 }
    precondition((1...MessageSignature.maximumTextBytes).contains(signature.keyID.utf8.count))
    checkPolicy(signature)
    let target = part(2).split(separator: UInt8(ascii: "?"), maxSplits: 1, omittingEmptySubsequences: false)
    let fields = part(3).split(separator: 0x0A).map { line -> SignedRequest.Field in
        let pair = line.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        return SignedRequest.Field(
            name: String(decoding: pair[0], as: UTF8.self), value: Array(pair.dropFirst().first ?? []))
    }
    let request = SignedRequest(
        method: Array("POST".utf8), scheme: Array("https".utf8), authority: Array("A.example:443".utf8),
        path: Array(target.first ?? []), query: target.count > 1 ? Array(target[1]) : nil, fields: fields)
    guard let base = try? signature.base(of: request) else { return 0 }
    let lines = base.split(separator: 0x0A, omittingEmptySubsequences: false)
    precondition(lines.count == signature.components.count + 1)
    precondition(
        lines.allSatisfy { $0.first == UInt8(ascii: "\"") && $0.allSatisfy { $0 == 9 || (0x20...0x7E).contains($0) } })
    // What is signed names the same components and parameters as what was received.
    let last = Array("\"@signature-params\": ".utf8)
    guard let parameters = lines.last, parameters.starts(with: last) else { preconditionFailure("no last line") }
    let again = try? MessageSignature(
        input: Array("x=".utf8) + parameters.dropFirst(last.count), signature: Array("x=:AA==:".utf8))
    precondition(again?.components == signature.components && again?.keyID == signature.keyID)
    precondition(again?.nonce == signature.nonce && (try? again?.base(of: request)) == base)
    return 0
}

/// An accepted signature covers what it must and is no older than it may be.
private func checkPolicy(_ signature: MessageSignature) {
    guard let method = try? SignatureComponent(named: "@method") else { preconditionFailure("a component") }
    let now = UnixTime(seconds: 1_618_884_500)
    let policy = SignaturePolicy(covers: [method], maximumAge: 60, requiresNonce: true)
    guard let end = try? policy.check(signature, algorithm: "ed25519", hasBody: false, now: now) else { return }
    precondition(signature.components.contains(method) && signature.nonce != nil)
    precondition(end >= now && end <= now.advanced(bySeconds: 60 + SignaturePolicy.maximumSkew))
}
