import MartletBrowser
import MartletHTTP

private let cookies = GatewayCookies(name: "m", isSecure: true, sameSite: .lax, maximumAge: .zero)

/// The cookies of a field's value, by a plain reading of the grammar.
private func pairs(_ value: ArraySlice<UInt8>) -> [[UInt8]] {
    value.split(separator: UInt8(ascii: ";")).map { element in
        var text = Array(element.drop { $0 == 0x20 || $0 == 0x09 })
        while text.last == 0x20 || text.last == 0x09 { text.removeLast() }
        return text
    }.filter { !$0.isEmpty }
}

private func isOurs(_ pair: [UInt8]) -> Bool {
    guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return false }
    var name = Array(pair[..<equals])
    while name.last == 0x20 || name.last == 0x09 { name.removeLast() }
    let isAttempt =
        name.starts(with: "m-start-".utf8) && name.count == 24
        && name[8...].allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    return isAttempt || ["m", "m-start", "m-form"].contains { $0.utf8.elementsEqual(name) }
}

/// Two `Cookie` fields of the input: the gateway's cookies are found or named as unusable, and nothing else changes.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCookies(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let input = Array(UnsafeBufferPointer(start: data, count: count))
    let half = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    var bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n".utf8)
    for value in half { bytes += Array("Cookie: ".utf8) + value + [0x0D, 0x0A] }
    bytes += [0x0D, 0x0A]
    var parser = RequestParser(maximumHeadBytes: 16384)
    var head = RequestHead(maximumFields: 50)
    guard case .complete(bytes.count) = parser.parse(bytes.span, into: &head) else { return 0 }
    var sent: [[UInt8]] = []
    var forwarded: [[UInt8]] = []
    for index in 0..<head.fields.count where head.fields[index].known == .cookie {
        let value = head.fields[index].value
        sent += pairs(bytes[value.bounds])
        var text: [UInt8] = []
        var ranges = ForwardedCookies(value)
        while let range = ranges.next(bytes.span, without: cookies) {
            precondition(!range.isEmpty && range.start >= value.start && range.end <= value.end)
            text += bytes[range.bounds]
        }
        precondition(pairs(text[...]) == pairs(bytes[value.bounds]).filter { !isOurs($0) })
        forwarded += pairs(text[...])
        _ = cookies.areSet(by: value, in: bytes.span)
    }
    precondition(forwarded == sent.filter { !isOurs($0) })
    let ours = sent.filter(isOurs)
    let found = cookies.find(in: bytes.span, head.fields)
    let values = [found.session, found.form].compactMap(\.self) + found.starts.map(\.value)
    let plain = cookies.findPlain(in: bytes.span, head.fields)
    precondition(plain.map { $0.session == found.session && $0.isEmpty == found.isEmpty } ?? true)
    precondition((plain != nil) == (found.unusable.isEmpty && found.starts.count <= 1))
    precondition(found.isEmpty == ours.isEmpty && values.count <= ours.count)
    precondition(values.count == ours.count || !found.unusable.isEmpty)
    precondition(found.problem == nil || !found.unusable.isEmpty)
    for range in values { precondition(bytes[range.bounds].allSatisfy { (0x21...0x7E).contains($0) }) }
    for name in found.unusable { _ = cookies.deletion(of: name) }
    return 0
}
