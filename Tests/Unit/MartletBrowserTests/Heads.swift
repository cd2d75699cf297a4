import MartletHTTP

/// The head of a request with more field lines.
func head(_ lines: [String], method: String = "GET") -> [UInt8] {
    Array("\(method) / HTTP/1.1\r\nHost: app.example.com\r\n\(lines.map { "\($0)\r\n" }.joined())\r\n".utf8)
}

/// Parses a head for a test that uses its fields.
func withFields<Result>(
    _ lines: [String], method: String = "GET", _ body: (Span<UInt8>, borrowing FieldList, Method) -> Result
) -> Result? {
    let bytes = head(lines, method: method)
    var parser = RequestParser(maximumHeadBytes: 16384)
    var parsed = RequestHead(maximumFields: 20)
    guard case .complete = parser.parse(bytes.span, into: &parsed) else { return nil }
    return body(bytes.span, parsed.fields, parsed.method)
}

/// The fields of a line as handlers get them.
func fields(_ lines: [String]) -> [(name: String, value: String)] {
    lines.map { line in
        let name = line.prefix { $0 != ":" }
        return (String(name), String(line.dropFirst(name.count + 2)))
    }
}
