internal import MartletCore
private import MartletCrypto
internal import MartletResponder

/// `/connect/qrconnect` and `/connect/oauth2/authorize` of the simulated WeChat: a page on which a user consents, and
/// the redirection with the code.
///
/// The page has buttons where WeChat's own has a QR code to scan.
struct WeChatPages {
    private static let person = "page_person"
    private static let snapshot = "page_snapshot"
    private static let action = "page_action"
    private static let maximumPersonBytes = 64
    private static let maximumBytes = 16 * 1024
    /// In seconds: ten minutes outside WeChat, five inside.
    private static let lifetimes: [WeChatPageRequest.Page: Int64] = [.website: 600, .officialAccount: 300]

    let simulator: WeChatSimulator
    let page: WeChatPageRequest.Page

    func handle(_ request: LocalRequest) -> LocalResponse {
        do throws(WeChatPageRequest.PageError) {
            switch request.method {
            case "GET", "HEAD": return try ask(request)
            case "POST": return try respond(to: request)
            default:
                return .problem(
                    .methodNotAllowed, request, "method not allowed: use GET, HEAD or POST", allow: "GET, HEAD, POST")
            }
        } catch {
            return Self.failing(error.text)
        }
    }

    static func failing(_ text: String) -> LocalResponse {
        BrowserPage.page(400, "WeChat", "<p>\(BrowserPage.escaped(text))</p>")
    }

    // MARK: Asking

    private func ask(_ request: LocalRequest) throws(WeChatPageRequest.PageError) -> LocalResponse {
        let checked = try checked(Self.parameters(of: Array(request.query.utf8)), of: request)
        let hidden = checked.parameters.map { BrowserPage.hiddenField($0.name, $0.value) }.joined()
        let snapshot =
            page == .officialAccount ? BrowserPage.checkbox("Snapshot page: a virtual user", Self.snapshot) : ""
        return BrowserPage.page(
            200, "The simulated WeChat",
            """
            <p>Signing in to <b>\(BrowserPage.escaped(checked.app.id))</b>, which asks for \
            \(BrowserPage.escaped(checked.scope)).</p><form method="post" action="\(page.rawValue)">\(hidden)\
            \(BrowserPage.field("User", Self.person, "Ada"))\(snapshot)\
            \(BrowserPage.button("Confirm", Self.action, "confirm"))\
            \(BrowserPage.button("Cancel", Self.action, "cancel"))</form>
            """)
    }

    /// The page of official accounts is for WeChat's own browser.
    private func checked(
        _ parameters: [(name: String, value: String)], of request: LocalRequest
    ) throws(WeChatPageRequest.PageError) -> WeChatPageRequest {
        if page == .officialAccount, request.field("user-agent")?.contains("MicroMessenger") != true {
            throw .init(text: "请在微信客户端打开链接 (open this link in WeChat: its User-Agent has MicroMessenger)")
        }
        return try WeChatPageRequest(page, parameters, simulator: simulator)
    }

    private static func parameters(
        of encoded: [UInt8]
    ) throws(WeChatPageRequest.PageError) -> [(name: String, value: String)] {
        var decoder = FormDecoder(encoded)
        do throws(FormDecoder.FormError) {
            return try decoder.pairs().map { name, value in
                (String(decoding: name, as: UTF8.self), value.withBytes { String(decoding: $0, as: UTF8.self) })
            }
        } catch {
            throw .init(text: "参数错误: the parameters cannot be decoded")
        }
    }

    // MARK: Responding

    /// What the user has chosen: a code, or a response without one, as WeChat has documented for a refused consent.
    private func respond(to request: LocalRequest) throws(WeChatPageRequest.PageError) -> LocalResponse {
        guard request.bodyBytes == request.body.count, request.bodyBytes <= Self.maximumBytes,
            request.field("content-type")?.lowercased().hasPrefix("application/x-www-form-urlencoded") == true
        else { throw .init(text: "参数错误: the body is not a form") }
        let all = try Self.parameters(of: request.body)
        let own = [Self.person, Self.snapshot, Self.action]
        let checked = try checked(all.filter { !own.contains($0.name) }, of: request)
        func choice(_ name: String) -> String? { all.last { $0.name == name }.map(\.value) }
        var parameters: [(name: String, value: String)] = []
        switch choice(Self.action) {
        case "confirm":
            guard let person = choice(Self.person), (1...Self.maximumPersonBytes).contains(person.utf8.count) else {
                throw .init(text: "参数错误: \(Self.person)")
            }
            let code = try code(for: person, checked, isVirtual: choice(Self.snapshot) != nil)
            parameters.append((name: "code", value: code))
        case "cancel": break
        default: throw .init(text: "参数错误: \(Self.action)")
        }
        if let state = checked.state { parameters.append((name: "state", value: state)) }
        let separator = parameters.isEmpty ? "" : checked.redirectURI.contains("?") ? "&" : "?"
        return BrowserPage.redirection(to: BrowserPage.url(checked.redirectURI, separator, parameters))
    }

    private func code(
        for person: String, _ request: WeChatPageRequest, isVirtual: Bool
    ) throws(WeChatPageRequest.PageError) -> String {
        let code = WeChatSimulator.Code(
            app: request.app.id, user: WeChatSimulator.User(named: person, of: request.app.id), scope: request.scope,
            isVirtual: isVirtual,
            expiresAt: simulator.clock.unixTime.advanced(bySeconds: Self.lifetimes[page] ?? 300), sessionKey: "",
            fault: nil, profileFault: nil)
        do throws(CryptoError) { return try simulator.issue(code) } catch {
            throw .init(text: "系统错误: no random bytes")
        }
    }
}
