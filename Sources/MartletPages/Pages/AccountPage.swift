package import MartletCore

/// The page on which users manage their account. Each action is a form that posts.
package struct AccountPage: Page {
    /// The name or address that the user is known by, if there is one.
    package var name: String?
    package var identities: [Identity]
    /// Providers that can be connected.
    package var linkable: [Linkable]
    package var sessions: [Session]
    /// `nil` for accounts without a password.
    package var password: PasswordChange?
    /// `nil` for users without an account that could be deleted.
    package var deletion: Deletion?
    /// Of all forms of the page.
    package var csrf: String
    /// The path that signs out; with `all=true` on all devices.
    package var signOut: String
    package var notice: AccountNotice?
    package var requestID: String?
    package var formOrigins: [String]?
    package var now: UnixTime

    package init(
        name: String?, identities: [Identity], linkable: [Linkable], sessions: [Session], password: PasswordChange?,
        deletion: Deletion?, csrf: String, signOut: String, notice: AccountNotice? = nil, requestID: String? = nil,
        formOrigins: [String] = [], now: UnixTime
    ) {
        self.name = name
        self.identities = identities
        self.linkable = linkable
        self.sessions = sessions
        self.password = password
        self.deletion = deletion
        self.csrf = csrf
        self.signOut = signOut
        self.notice = notice
        self.requestID = requestID
        self.formOrigins = formOrigins
        self.now = now
    }

    package var isWide: Bool { true }

    /// The heading.
    package func title(in context: PageContext) -> String { context.words(.accountTitle) }

    /// The elements inside `main`.
    package func content(in context: PageContext) -> HTML {
        let (words, parts) = (context.words, PageComponents(context))
        let subtitle = name.map { name -> HTML in
            "<p class=\"dim\"><bdi>\(words(.signedInAs, ["name": name]))</bdi></p>"
        }
        let home: HTML = "<p class=\"dim\"><a href=\"/\">\(context.site.title)</a></p>"
        let message = notice.map { parts.notice($0.text(words), $0.kind, requestID: requestID) }
        let sections = AccountSections(self, context)
        return """
            <div class="masthead">\(parts.logo)<div>\(home)<h1>\(title(in: context))</h1>\(subtitle ?? .empty)</div>
            \(parts.form(signOut, csrf: csrf, "<button class=\"button plain\" type=\"submit\">\(words(.signOut))</button>"))
            </div>
            \(message ?? .empty)
            \(HTML.joined(sections.all, separator: "\n"))
            """
    }
}

extension AccountPage {
    /// A provider that vouches for the account.
    package struct Identity: Sendable {
        package let provider: ProviderButton.Kind
        /// The name or address at the provider, if it is known.
        package let name: String?
        package let linkedAt: UnixTime
        package let lastUsedAt: UnixTime?
        /// Whether the provider withdrew it.
        package let isRevoked: Bool
        /// The path that disconnects it; `nil` if it cannot be, as the only one.
        package let unlink: String?

        package init(
            provider: ProviderButton.Kind, name: String?, linkedAt: UnixTime, lastUsedAt: UnixTime?,
            isRevoked: Bool = false, unlink: String?
        ) {
            self.provider = provider
            self.name = name
            self.linkedAt = linkedAt
            self.lastUsedAt = lastUsedAt
            self.isRevoked = isRevoked
            self.unlink = unlink
        }
    }

    /// A provider that can be connected to the account.
    package struct Linkable: Sendable {
        package let provider: ProviderButton.Kind
        /// The path that begins it.
        package let action: String

        package init(provider: ProviderButton.Kind, action: String) {
            self.provider = provider
            self.action = action
        }
    }

    /// A session of the account.
    package struct Session: Sendable {
        package let deviceName: String?
        package let userAgent: String?
        /// The client's address, or a place.
        package let location: String?
        package let provider: ProviderButton.Kind?
        package let signedInAt: UnixTime
        package let lastUsedAt: UnixTime
        /// Whether this request came with it.
        package let isCurrent: Bool
        /// The path that ends it.
        package let end: String

        package init(
            deviceName: String?, userAgent: String?, location: String?, provider: ProviderButton.Kind?,
            signedInAt: UnixTime, lastUsedAt: UnixTime, isCurrent: Bool, end: String
        ) {
            self.deviceName = deviceName
            self.userAgent = userAgent
            self.location = location
            self.provider = provider
            self.signedInAt = signedInAt
            self.lastUsedAt = lastUsedAt
            self.isCurrent = isCurrent
            self.end = end
        }
    }

    /// The form that changes the password: `current_password`, `new_password`.
    package struct PasswordChange: Sendable {
        package let action: String
        /// For password managers.
        package let username: String?
        package let minimumLength: Int
        /// Shown at the current password, unless it is about the new one.
        package let error: FormError?

        package init(action: String, username: String?, minimumLength: Int, error: FormError? = nil) {
            self.action = action
            self.username = username
            self.minimumLength = minimumLength
            self.error = error
        }

        var isAboutNew: Bool { error?.field == .password }
    }

    /// The form that deletes the account: `confirm=true`.
    package struct Deletion: Sendable {
        package let action: String
        /// The path of the page for signing in, if the last sign-in is too long ago.
        package let signIn: String?
        /// Seconds until the account is deleted.
        package let grace: Int64
        /// The form came without its confirmation.
        package let isUnconfirmed: Bool

        package init(action: String, signIn: String?, grace: Int64, isUnconfirmed: Bool = false) {
            self.action = action
            self.signIn = signIn
            self.grace = grace
            self.isUnconfirmed = isUnconfirmed
        }
    }
}

/// What the account's page says about the last action.
package enum AccountNotice: Sendable, Equatable {
    case linked(ProviderButton.Kind)
    case unlinked(ProviderButton.Kind)
    case linkCancelled(ProviderButton.Kind)
    case identityTaken(ProviderButton.Kind)
    case alreadyLinked(ProviderButton.Kind)
    case lastIdentity, sessionEnded, passwordChanged, formExpired, failed
    /// - Parameter seconds: until the next attempt.
    case unavailable(seconds: Int64)

    func text(_ words: Words) -> String {
        switch self {
        case .linked(let provider): words(.linked, ["provider": provider.displayName(words)])
        case .unlinked(let provider): words(.unlinked, ["provider": provider.displayName(words)])
        case .linkCancelled(let provider): words(.linkCancelled, ["provider": provider.displayName(words)])
        case .identityTaken(let provider): words(.identityTaken, ["provider": provider.displayName(words)])
        case .alreadyLinked(let provider): words(.alreadyLinked, ["provider": provider.displayName(words)])
        case .lastIdentity: words(.lastIdentity)
        case .sessionEnded: words(.sessionEndedNotice)
        case .passwordChanged: words(.passwordChanged)
        case .formExpired: words(.formExpired)
        case .failed: words(.actionFailed)
        case .unavailable(let seconds): words(.unavailableText, ["wait": words.wait(seconds: seconds)])
        }
    }

    var kind: NoticeKind {
        switch self {
        case .linked, .unlinked, .sessionEnded, .passwordChanged: .success
        case .linkCancelled: .note
        case .identityTaken, .alreadyLinked, .lastIdentity, .formExpired, .failed, .unavailable: .error
        }
    }
}
