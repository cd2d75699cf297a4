import MartletHTTP
import Testing

@Suite struct AuthorizationValueTests {
    private static let token = String(repeating: "abcXYZ019-._", count: 70)

    private func read(_ value: String) -> String {
        let bytes = Array("Authorization: \(value)\r\n\r\n".utf8)
        let range = ByteRange(start: 15, count: value.utf8.count)
        switch AuthorizationValue(bytes.span, range) {
        case .bearer(let credential):
            #expect(bearerCandidate(bytes.span, of: range) == credential)
            return "bearer \(slice(bytes, credential))"
        case .basic(let credential): return "basic \(slice(bytes, credential))"
        case .dpop(let credential):
            #expect(bearerCandidate(bytes.span, of: range) == nil)
            return "dpop \(slice(bytes, credential))"
        case .other: return "other"
        case .malformed: return "malformed"
        }
    }

    @Test(arguments: [
        ("Bearer abc", "bearer abc"), ("bearer abc", "bearer abc"), ("BEARER   abc", "bearer abc"),
        ("Bearer a.b-c_d~e+f/g==", "bearer a.b-c_d~e+f/g=="),
        ("Bearer \(token)", "bearer \(token)"), ("Basic dTpw", "basic dTpw"), ("basic dTpw=", "basic dTpw="),
        ("DPoP \(token)", "dpop \(token)"), ("dpop  a", "dpop a"), ("DPoPx a", "other"), ("DPo a", "other"),
        ("Digest username=\"x\"", "other"), ("Negotiate", "other"), ("Bearerx abc", "other"), ("abc", "other"),
        ("Bearer", "malformed"), ("Bearer ", "malformed"), ("Bearer a b", "malformed"), ("Bearer a,b", "malformed"),
        ("Bearer =", "malformed"),
        ("Bearer a=b", "malformed"), ("Bearer\tabc", "malformed"), ("Bearer \u{e9}", "malformed"),
        ("Bearer \(token) x", "malformed"),
        ("Bearer \(token)\"", "malformed"), ("Basic", "malformed"), ("", "malformed"), (",Bearer a", "malformed"),
        ("Bearer,a", "malformed"), ("Be\u{e9}rer a", "malformed"),
    ])
    func `distinguishes schemes and malformed values`(_ value: String, _ expected: String) {
        #expect(read(value) == expected)
    }
}
