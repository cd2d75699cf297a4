import MartletCore
import MartletJSON
import Testing

@testable import MartletProvider

@Suite struct BodyErrorTests {
    @Test func `points to a member, also of an object`() {
        #expect(BodyError("identity_token", .missing).pointer == "/identity_token")
        #expect(BodyError(["full_name", "given_name"], .unknownType).pointer == "/full_name/given_name")
        #expect(BodyError(["a/b~c"], .invalid).pointer == "/a~1b~0c")
        #expect(BodyError([], .malformed).pointer == "")
    }

    @Test(arguments: BodyError.Code.allCases)
    func `has one sentence for every code`(code: BodyError.Code) {
        for error in [BodyError([], code), BodyError("code", code)] {
            #expect(error.detail.hasSuffix(".") && error.detail.utf8.allSatisfy { (0x20...0x7E).contains($0) })
        }
        #expect(code == .missing || code.rawValue.utf8.allSatisfy { $0 == 0x5F || (0x61...0x7A).contains($0) })
    }

    private func form(_ names: [String]) -> SignInForm {
        let texts = names.map { ($0, Secret("a secret value")) }
        return SignInForm(texts: Dictionary(uniqueKeysWithValues: texts), others: [:], isForm: false)
    }

    struct NearMissCase: Sendable {
        let wanted: String
        let sent: [String]
        let near: String?

        init(_ wanted: String, _ sent: [String], _ near: String?) {
            (self.wanted, self.sent, self.near) = (wanted, sent, near)
        }
    }

    static let misses: [NearMissCase] = [
        .init("identity_token", ["identityToken"], "identityToken"),
        .init("identity_token", ["Identity-Token"], "Identity-Token"),
        .init("identity_token", ["identity_tokn", "user"], "identity_tokn"),
        .init("username", ["userName"], "userName"), .init("identity_token", ["idToken"], nil),
        .init("username", ["password", "email"], "email"), .init("username", ["password"], nil),
        .init("identity_token", [], nil), .init("code", ["password"], nil), .init("code", ["Code", "cod"], "Code"),
        // Names that are not safe to print are never suggested.
        .init("code", ["cod\u{1B}"], nil), .init("code", ["c\u{F6}de"], nil), .init("code", ["code\""], nil),
        .init("code", ["<code>"], nil), .init("code", [String(repeating: "code", count: 20)], nil),
    ]

    @Test(arguments: misses)
    func `suggests the name that was probably intended`(wanted: NearMissCase) {
        let error = form(wanted.sent).missing(wanted.wanted)
        #expect(error.code == .signInMissingMember && error.disposition == .malformed)
        let hint = wanted.near.map { " (`\($0)`: did you mean `\(wanted.wanted)`?)" } ?? ""
        let detail = "The member `\(wanted.wanted)` is missing\(hint)."
        #expect(error.bodyErrors == [BodyError(wanted.wanted, .missing, detail: detail)])
    }

    @Test func `compares a bounded number of names`() {
        let many = (0..<5000).map { "code\($0)" }
        #expect(NearMiss.find("code", among: many) != nil)
    }

    @Test func `names the required type of a member`() {
        let form = SignInForm(texts: ["a": Secret("x")], others: ["b": .bool(true), "c": .null], isForm: false)
        func errors(_ body: () throws(AuthenticationError) -> Void) -> [BodyError] {
            do throws(AuthenticationError) {
                try body()
                return []
            } catch {
                return error.bodyErrors
            }
        }
        #expect(
            errors { () throws(AuthenticationError) in _ = try form.text("b") }
                == [BodyError("b", .unknownType, detail: "`b` must be a string.")])
        #expect(
            errors { () throws(AuthenticationError) in _ = try form.object("a") }
                == [BodyError("a", .unknownType, detail: "`a` must be an object.")])
        #expect(errors { () throws(AuthenticationError) in _ = try form.requiredText("c") }.first?.code == .missing)
        #expect(errors { () throws(AuthenticationError) in _ = try form.object("c") }.isEmpty)
    }
}
