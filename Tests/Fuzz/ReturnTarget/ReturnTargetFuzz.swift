import MartletBrowser

private let origin = "https://app.example.com"
private let others = ["https://www.example.org", "http://localhost:3000"]
private let rule = ReturnRule(origin: origin, otherOrigins: others, signInPath: "/auth")

/// Whatever is sent as `return_to`, a browser that resolves the target stays on an allowed origin.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzReturnTarget(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    let bytes = Array(UnsafeBufferPointer(start: data, count: count))
    for value in [bytes, [0x2F] + bytes, Array(origin.utf8) + bytes, Array(others[0].utf8) + bytes] {
        let target = rule.target(ofBytes: value)
        let text = Array(target.text.utf8)
        precondition(text.count <= ReturnRule.maximumBytes && text.allSatisfy { (0x21...0x7E).contains($0) })
        precondition(!text.contains { "\"<>\\^`{|}#".utf8.contains($0) })
        let found = BrowserURL.origin(of: text, on: origin)
        precondition(found == origin || others.contains(found ?? ""))
        precondition(target.isLocal == (found == origin))
        precondition(rule.target(ofBytes: text) == target)
        let argument = Array(target.argument.utf8)
        precondition(argument.allSatisfy { (0x25...0x7E).contains($0) && !"&+=;?#'()*,".utf8.contains($0) })
        // Nor does it lead to an endpoint that signs in or out.
        let path = target.text.prefix { $0 != "?" }.lowercased()
        for endpoint in ["sign-in", "start", "callback", "sign-out"] {
            precondition(path != "/auth/\(endpoint)" && !path.hasPrefix("/auth/\(endpoint)/"))
        }
    }
    return 0
}
