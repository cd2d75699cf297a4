import MartletCore
import MartletHTTP

/// Normalizes the input: the result is its own normal form, and has no segment that leads to a parent.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let (slash, percent, merges) = (data[0] & 1 != 0, data[0] & 2 != 0, data[0] & 4 != 0)
    let path = Array(UnsafeBufferPointer(start: data + 1, count: size - 1))
    var out = ByteBuffer()
    var normal = path
    switch PathNormalizer.normalize(
        path.span, keepsEncodedSlash: slash, keepsEncodedPercent: percent, mergesSlashes: merges, into: &out)
    {
    case .failure: return 0
    case .unchanged: precondition(out.isEmpty)
    case .rewritten: normal = out.array
    }
    var unused = ByteBuffer()
    let again = PathNormalizer.normalize(
        normal.span, keepsEncodedSlash: slash, keepsEncodedPercent: percent, mergesSlashes: merges, into: &unused)
    precondition(again == .unchanged)
    let segments = normal.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    for segment in segments.dropFirst().dropLast() { precondition(!segment.isEmpty) }
    for segment in segments {
        let plain = segment.prefix { $0 != UInt8(ascii: ";") }
        precondition(!plain.elementsEqual(".".utf8) && !plain.elementsEqual("..".utf8))
    }
    precondition(normal.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") && $0 != UInt8(ascii: "#") })
    // Whoever decodes the path once finds no character in it that folds to a separator.
    let decoded = String(decoding: decode(normal), as: UTF8.self).unicodeScalars
    precondition(!CompatibilityForms.areAmbiguous(decoded))
    return 0
}

private func decode(_ path: [UInt8]) -> [UInt8] {
    var decoded: [UInt8] = []
    var index = 0
    while index < path.count {
        let isEncoded = path[index] == UInt8(ascii: "%") && index + 2 < path.count
        let value = isEncoded ? UInt8(String(decoding: path[index + 1...index + 2], as: UTF8.self), radix: 16) : nil
        decoded.append(value ?? path[index])
        index += value == nil ? 1 : 3
    }
    return decoded
}
