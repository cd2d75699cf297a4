import MartletCore
import MartletHTTP
import MartletHTTP2

/// Any list of fields, without nghttp2: the HTTP/1 parser reads the same message from its text, or rejects its content,
/// and the head that is filled from the offsets of the lines is the one that the parser reads.
///
/// Each field is its name's length, its value's length, and both; a length from 0xF0 on selects a common field.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard size > 1 else { return 0 }
    let bytes = Array(UnsafeBufferPointer(start: data + 1, count: size - 1))
    let fields = list(bytes)
    if data[0] & 1 == 0 { request(fields, ends: data[0] & 2 != 0) } else { response(fields) }
    return 0
}

private typealias Field = (name: [UInt8], value: [UInt8])

private let common: [(StaticString, StaticString)] = [
    (":method", "GET"), (":method", "CONNECT"), (":scheme", "https"), (":path", "/a"), (":authority", "a.example"),
    (":protocol", "websocket"), ("host", "a.example"), ("cookie", "a=b"), ("content-length", "12"), ("te", "trailers"),
    (":status", "200"), (":status", "103"), ("sec-websocket-key", "x"), ("connection", "close"),
    ("expect", "100-continue"),
    (":method", "OPTIONS"),
]

private func list(_ bytes: [UInt8]) -> [Field] {
    var rest = bytes[...]
    var fields: [Field] = []
    while let first = rest.popFirst() {
        if first >= 0xF0 {
            let field = common[Int(first & 15)]
            fields.append((Array("\(field.0)".utf8), Array("\(field.1)".utf8)))
            continue
        }
        guard let second = rest.popFirst() else { break }
        let name = Array(rest.prefix(Int(first)))
        rest = rest.dropFirst(Int(first))
        fields.append((name, Array(rest.prefix(Int(second)))))
        rest = rest.dropFirst(Int(second))
    }
    return fields
}

private func write(
    _ fields: [Field], _ kind: HeadWriter.Kind, ends: Bool, into writer: inout HeadWriter
) -> [UInt8]? {
    writer.begin(kind, ends: ends)
    for field in fields {
        field.name.withUnsafeBufferPointer { name in
            field.value.withUnsafeBufferPointer { value in writer.add(name, value) }
        }
    }
    let result = writer.finish()
    precondition(result == .valid || writer.text.isEmpty)
    return result == .valid ? writer.text.array : nil
}

private func request(_ fields: [Field], ends: Bool) {
    var writer = HeadWriter(headerBytes: 4096, headerFields: 32, maximumTargetBytes: 256)
    guard let text = write(fields, .request, ends: ends, into: &writer) else { return }
    precondition(text.count <= 4096)
    var parser = RequestParser(maximumHeadBytes: 4096, maximumTargetBytes: 256)
    var head = RequestHead(maximumFields: 32)
    let outcome = parser.parse(text.span, into: &head)
    var filled = RequestHead(maximumFields: 32)
    precondition(
        parser.parse(text.span, offsets: writer.offsets.part(0, writer.offsets.count), into: &filled) == outcome)
    switch outcome {
    case .complete(let count): precondition(count == text.count)
    case .failure(.badHost), .failure(.authorizationRepeated), .failure(.badExpectation), .failure(.badContentLength),
        .failure(.badFieldName), .failure(.badRequestLine):
        return
    case .failure, .needMore: preconditionFailure()
    }
    precondition(description(of: head) == description(of: filled))
    let isTunnel = !head.upgrade.isEmpty
    let method = value(":method", fields) ?? []
    precondition(Array(text[head.methodText.bounds]) == (isTunnel ? Array("GET".utf8) : method))
    if head.method != .connect {
        var target = ByteBuffer()
        let path = value(":path", fields) ?? []
        let isWhole = TargetEncoding.append(path.span, to: &target)
        precondition(isWhole)
        precondition(Array(text[head.target.bounds]) == target.array)
    }
    var host = value(":authority", fields) ?? value("host", fields) ?? []
    if host.last == UInt8(ascii: ":") { host.removeLast() }
    precondition(Array(text[head.authority.bounds]) == host)
    precondition(ends || isTunnel || head.method == .connect || head.framing != .none)
    precondition(kept(text, head.fields) == expected(fields, isTunnel: isTunnel))
}

/// All that a request head says, as numbers to compare.
private func description(of head: borrowing RequestHead) -> [Int] {
    var numbers = [Int(head.method.rawValue), head.authorization]
    for range in [head.methodText, head.target, head.path, head.query, head.authority, head.upgrade] {
        numbers += [range.start, range.end]
    }
    for flag in [
        head.isAbsoluteForm, head.isAsteriskForm, head.isAuthorityForm, head.isHTTP10, head.keepsAlive,
        head.expectsContinue, head.announcesTrailers,
    ] { numbers.append(flag ? 1 : 0) }
    switch head.framing {
    case .none: numbers.append(-1)
    case .length(let count): numbers.append(count)
    case .chunked: numbers.append(-2)
    case .untilClose: numbers.append(-3)
    }
    for index in 0..<head.fields.count {
        let field = head.fields[index]
        for range in [field.name, field.value, field.line] { numbers += [range.start, range.end] }
        numbers += [Int(field.known.rawValue), Int(field.alias.rawValue)]
        for flag in [field.hasObsText, field.isUnusual, field.isNeverForwarded, field.isConnectionOption] {
            numbers.append(flag ? 1 : 0)
        }
    }
    return numbers
}

private func response(_ fields: [Field]) {
    var writer = HeadWriter(headerBytes: 4096, headerFields: 32, maximumTargetBytes: 256)
    guard let text = write(fields, .response, ends: false, into: &writer) else { return }
    var parser = ResponseParser(maximumHeadBytes: 4096)
    var head = ResponseHead(maximumFields: 32)
    switch parser.parse(text.span, requestMethod: .get, into: &head) {
    case .complete(let count): precondition(count == text.count)
    case .failure(.upstreamBadContentLength): return
    case .failure, .needMore: preconditionFailure()
    }
    precondition(Array("\(head.status)".utf8) == value(":status", fields) ?? [] && head.status != 101)
    precondition(head.framing != .untilClose)
}

private func value(_ name: String, _ fields: [Field]) -> [UInt8]? {
    fields.first { $0.name == Array(name.utf8) }?.value
}

/// Fields that are derived from others.
private let made = ["host", "cookie", "connection", "upgrade", "transfer-encoding", "sec-websocket-key"]

private func kept(_ text: [UInt8], _ list: borrowing FieldList) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    for index in 0..<list.count {
        let name = String(decoding: text[list[index].name.bounds], as: UTF8.self).lowercased()
        if !made.contains(name) { lines.append(Array(name.utf8) + [58] + text[list[index].value.bounds]) }
    }
    return lines
}

private func expected(_ fields: [Field], isTunnel: Bool) -> [[UInt8]] {
    let left = made + (isTunnel ? ["sec-websocket-accept"] : [])
    return fields.filter { $0.name.first != 58 && !left.contains(String(decoding: $0.name, as: UTF8.self)) }
        .map { $0.name + [58] + $0.value }
}
