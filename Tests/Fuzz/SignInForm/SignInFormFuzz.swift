import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletSignIn

private let limits = JSONLimits(maximumDepth: 8, maximumBytes: SignInBody.maximumBytes)

/// The first byte chooses between JSON and a form; JSON is held to what the general parser reads, a form to itself.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
    guard let choice = bytes.first else { return 0 }
    let body = Array(bytes.dropFirst())
    if choice & 1 == 0 { json(body) } else { form(body) }
    return 0
}

private func json(_ body: [UInt8]) {
    let parsed = (try? JSON.parse(body, limits: limits))?.object
    guard let form = try? SignInBody.json(body) else { return precondition(parsed == nil) }
    guard let parsed else { preconditionFailure("an object was read where there is none") }
    precondition(!form.isForm)
    for member in parsed.members where member.name.utf8.allSatisfy({ $0 < 0x80 }) {
        switch member.value {
        case .string(let text): precondition((try? form.text(member.name))?.hasSameBytes(as: text) ?? false)
        case .null: precondition(!isRefused(member.name, in: form) && (try? form.secret(member.name)) == nil)
        case .object(let object): precondition((try? form.object(member.name)) == object)
        default: precondition(isRefused(member.name, in: form))
        }
    }
}

private func isRefused(_ name: String, in form: SignInForm) -> Bool {
    do {
        _ = try form.text(name)
        return false
    } catch {
        return true
    }
}

private func form(_ body: [UInt8]) {
    guard let form = try? SignInBody.form(body) else { return }
    precondition(form.isForm)
    // Written again with every byte escaped, it reads the same.
    for name in body.split(separator: UInt8(ascii: "&")).compactMap({ $0.split(separator: UInt8(ascii: "=")).first }) {
        let name = String(decoding: name, as: UTF8.self)
        guard let text = try? form.text(name) else { continue }
        let again = Array("x=".utf8) + text.utf8.flatMap { Array("%\(digit($0 >> 4))\(digit($0 & 15))".utf8) }
        precondition((try? SignInBody.form(again).text("x"))?.hasSameBytes(as: text) ?? false)
    }
}

private func digit(_ value: UInt8) -> String { String(value, radix: 16, uppercase: true) }
